// Search over all columns.

class Search {
  constructor(field, output, columns, n, on) {
    Object.assign(this, { field, output, columns, n, on, found: null, rows: [], at: -1 });
    let waiting;
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
    this.found = text ? new Uint8Array(this.n) : null;
    if (text) for (const column of this.columns) column.match(text, this.found);
    this.rows = [];
    if (text) this.found.forEach((hit, row) => { if (hit) this.rows.push(row); });
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
