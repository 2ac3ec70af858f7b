import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["src/laptsne/explorer/assets/*.js"],
    languageOptions: { globals: { ...globals.browser, BODY: "readonly", STYLE: "readonly" } },
    rules: {
      "eqeqeq": "error",
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", 60],
      "no-restricted-properties": ["error", { property: "outerHTML" }, { property: "insertAdjacentHTML" }],
      "no-self-compare": "off",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
