// Light or dark: as chosen before, as the notebook is, or as the system is.

const KEY = "laptsne-explorer-theme";

export class Theme {
  /** The theme of an element. `notebook` says whether it is in one, whose theme it then follows. */
  constructor(host, notebook, onChange) {
    this.host = host;
    this.notebook = notebook;
    this.onChange = onChange;
    this.chosen = notebook ? null : remembered();
    const system = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => this.apply();
    const observer = new MutationObserver(apply);
    system.addEventListener("change", apply);
    if (notebook) observer.observe(document.body, { attributes: true });
    /** Follow neither the notebook nor the system any longer. */
    this.close = () => {
      system.removeEventListener("change", apply);
      observer.disconnect();
    };
    host.dataset.theme = this.dark ? "dark" : "light";
  }

  get dark() {
    if (this.chosen) return this.chosen === "dark";
    const { jpThemeLight } = document.body.dataset; // of JupyterLab
    if (this.notebook && jpThemeLight) return jpThemeLight === "false";
    if (this.notebook && /\bvscode-(dark|light)\b/.test(document.body.className)) {
      return document.body.classList.contains("vscode-dark");
    }
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  toggle() {
    this.chosen = this.dark ? "light" : "dark";
    try {
      if (!this.notebook) localStorage.setItem(KEY, this.chosen);
    } catch { /* storage is switched off */ }
    this.apply();
  }

  apply() {
    const theme = this.dark ? "dark" : "light";
    if (this.host.dataset.theme === theme) return;
    this.host.dataset.theme = theme;
    this.onChange();
  }
}

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "dark" || theme === "light" ? theme : null;
  } catch {
    return null;
  }
}
