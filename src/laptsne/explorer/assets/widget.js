// The explorer in a notebook, as a front end of anywidget. BODY and STYLE are added when the file is assembled.

import { readData } from "./data.js";
import { Explorer } from "./explorer.js";
import { readout } from "./state.js";

const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** Show the explorer; returns a function that removes it, which anywidget calls when the cell runs again or is closed. */
async function render({ model, el }) {
  const root = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  const host = document.createElement("div");
  host.className = "explorer widget";
  host.tabIndex = -1;
  host.style.height = `${model.get("height")}px`;
  const style = document.createElement("style");
  style.textContent = STYLE;
  host.innerHTML = BODY; // a constant of this file, without data
  root.append(style, host);
  const data = await readData(bytes(model.get("_data")));
  const block = (id) => bytes(model.get(`_${id}`));
  const explorer = /** @type {any} */ (new Explorer(root, data, { block, notebook: true }));
  explorer.images = explorer.loadImages();
  const disconnect = connect(explorer, model);
  el.explorer = readout(explorer);
  return () => {
    disconnect();
    explorer.close();
    delete el.explorer;
    root.replaceChildren();
  };
}

/** Keep the selection and the colour of the view and of Python the same; returns a function that ends this. */
function connect(explorer, model) {
  const rowsOf = () => {
    const view = model.get("selection");
    return new Uint32Array(bytes(view).slice().buffer);
  };
  const same = (rows) => rows.length === explorer.selection.rows.length
    && rows.every((row, i) => row === explorer.selection.rows[i]);
  const name = () => explorer.column?.name ?? "";
  explorer.onChange = () => {
    if (!same(rowsOf())) model.set("selection", new DataView(explorer.selection.rows.slice().buffer));
    if (model.get("color") !== name()) model.set("color", name());
    model.save_changes();
  };
  const select = () => { if (!same(rowsOf())) explorer.selection.set(rowsOf()); };
  const colour = () => { if (model.get("color") !== name()) explorer.chooseColourNamed(model.get("color")); };
  model.on("change:selection", select);
  model.on("change:color", colour);
  select();
  colour();
  return () => {
    model.off("change:selection", select);
    model.off("change:color", colour);
  };
}

export default { render };
