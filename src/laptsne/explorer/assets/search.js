// Search over all columns.

import { counted, plural } from "./number.js";

export class Search {
  constructor(field, output, columns, n, on) {
    this.field = field;
    this.output = output;
    this.columns = columns;
    this.n = n;
    this.on = on;
    this.text = "";
    /** @type {Uint8Array | null} */
    this.found = null;
    this.rows = [];
    this.at = -1;
    let waiting = 0;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.run(), 120);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        clearTimeout(waiting);
        this.next(event.shiftKey ? -1 : 1);
      }
    });
  }

  run() {
    const text = this.field.value.trim();
    if (text === this.text) return;
    this.text = text;
    this.at = -1;
    const found = new Uint8Array(this.n);
    this.rows = [];
    if (text) {
      for (const column of this.columns) column.match(text, found);
      found.forEach((hit, row) => { if (hit) this.rows.push(row); });
    }
    this.found = text ? found : null;
    this.tell();
    this.on.change();
  }

  /** Go to the next match. */
  next(step) {
    this.run();
    if (!this.rows.length) return;
    const from = this.at < 0 && step < 0 ? 0 : this.at;
    this.at = (from + step + this.rows.length) % this.rows.length;
    this.tell();
    this.on.visit(this.rows[this.at]);
  }

  tell() {
    const count = this.rows.length ? plural(this.rows.length, "match", "matches") : "no match";
    this.output.textContent = !this.text ? "" : this.at < 0 ? count : `${counted(this.at + 1)} of ${count}`;
  }

  clear() {
    this.field.value = "";
    this.run();
  }
}
