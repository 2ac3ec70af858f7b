// The selected points as a table and as a CSV file.

import { button, element, saveFile } from "./dom.js";
import { plural } from "./number.js";

const MAX_LISTED = 500;

export class SelectedRows {
  /** `on` has the actions change, visit (a row) and csv (of rows). */
  constructor(panel, columns, n, on) {
    this.panel = panel;
    this.columns = columns;
    this.n = n;
    this.on = on;
    this.rows = new Uint32Array(0);
    /** @type {Uint8Array | null} */
    this.mask = null;
    this.part("clear").addEventListener("click", () => this.set([]));
    this.part("save").addEventListener("click", () => {
      saveFile(new Blob([on.csv(this.rows)], { type: "text/csv" }), "selection.csv");
    });
    const heads = element("tr");
    for (const { name, kind } of [{ name: "row", kind: "" }, ...columns]) {
      const head = element("th", kind === "number" ? "number" : "", name);
      head.scope = "col";
      heads.append(head);
    }
    panel.querySelector(".table thead").append(heads);
  }

  part(name) {
    return this.panel.querySelector(`.${name}`);
  }

  /** Select rows: these alone, these as well ("add"), or without these ("remove"). */
  set(rows, mode = "set") {
    const mask = mode !== "set" && this.mask ? this.mask.slice() : new Uint8Array(this.n);
    const value = mode === "remove" ? 0 : 1;
    for (let i = 0; i < rows.length; i++) mask[rows[i]] = value;
    let count = 0;
    for (let row = 0; row < this.n; row++) count += mask[row];
    this.rows = new Uint32Array(count);
    for (let row = 0, i = 0; row < this.n; row++) if (mask[row]) this.rows[i++] = row;
    this.mask = count ? mask : null;
    this.tell();
    this.on.change();
  }

  tell() {
    const { rows } = this;
    this.panel.hidden = !rows.length;
    const share = rows.length / this.n;
    const percent = share < 0.001 ? "< 0.1" : (100 * share).toFixed(1);
    this.part("total").textContent = `${plural(rows.length, "point")} selected · ${percent} %`;
    const cut = rows.length > MAX_LISTED;
    this.part("cut").textContent = cut ? `The first ${MAX_LISTED} are listed; the CSV file has all.` : "";
    const listed = Array.from(rows.subarray(0, MAX_LISTED), (row) => this.line(row));
    this.panel.querySelector(".table tbody").replaceChildren(...listed);
  }

  line(row) {
    const line = element("tr");
    const head = element("th");
    head.scope = "row";
    const link = button("link", String(row), () => this.on.visit(row));
    link.setAttribute("aria-label", `Show row ${row} on the map`);
    head.append(link);
    line.append(head);
    for (const column of this.columns) {
      const name = [column.kind === "number" ? "number" : "", column.isMissing(row) ? "missing" : ""].join(" ").trim();
      line.append(element("td", name, column.shown(row).slice(0, 300)));
    }
    return line;
  }
}

/** Mask of the rows that masks have in common; null is all rows. */
export function common(...masks) {
  const [first, ...others] = masks.filter(Boolean);
  if (!others.length) return first ?? null;
  const mask = first.slice();
  for (const other of others) for (let row = 0; row < mask.length; row++) mask[row] &= other[row];
  return mask;
}
