// The selected points as a table and as a CSV file.

const MAX_LISTED = 500;

class Selection {
  constructor(panel, columns, n, on) {
    Object.assign(this, { panel, columns, n, on, rows: [], mask: null });
    this.part = (name) => panel.querySelector(`.${name}`);
    this.part("clear").addEventListener("click", () => this.set([]));
    this.part("save").addEventListener("click", () => this.save());
    const heads = element("tr");
    for (const { name, kind } of [{ name: "row" }, ...columns]) {
      const head = element("th", kind === "number" ? "number" : "", name);
      head.scope = "col";
      heads.append(head);
    }
    panel.querySelector("thead").append(heads);
  }

  set(rows) {
    this.rows = rows;
    this.mask = rows.length ? new Uint8Array(this.n) : null;
    for (const row of rows) this.mask[row] = 1;
    this.panel.hidden = !rows.length;
    const share = rows.length / this.n;
    const percent = share < 0.001 ? "< 0.1" : (100 * share).toFixed(1);
    this.part("total").textContent = `${plural(rows.length, "point")} selected · ${percent} %`;
    const cut = rows.length > MAX_LISTED;
    this.part("note").textContent = cut ? `The first ${MAX_LISTED} are listed; the CSV file has all.` : "";
    this.panel.querySelector("tbody").replaceChildren(...rows.slice(0, MAX_LISTED).map((row) => this.line(row)));
    this.on.change();
  }

  line(row) {
    const line = element("tr");
    const head = element("th");
    head.scope = "row";
    const button = element("button", "link", String(row));
    button.type = "button";
    button.setAttribute("aria-label", `Show row ${row} on the map`);
    button.addEventListener("click", () => this.on.visit(row));
    head.append(button);
    line.append(head);
    for (const column of this.columns) {
      const name = [column.kind === "number" ? "number" : "", column.isMissing(row) ? "missing" : ""].join(" ").trim();
      line.append(element("td", name, column.shown(row)));
    }
    return line;
  }

  save() {
    const url = URL.createObjectURL(new Blob([this.on.csv(this.rows)], { type: "text/csv" }));
    const link = element("a");
    Object.assign(link, { href: url, download: "selection.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
}
