// The legend of the colouring column. Each category is a button that highlights its points.

const MAX_ENTRIES = 200;

class Legend {
  constructor(box, onChange) {
    Object.assign(this, { box, onChange, lit: new Set() });
  }

  show(column, dark, grey) {
    if (column !== this.column) this.lit.clear();
    this.column = column;
    this.box.replaceChildren();
    if (!column) return;
    if (column.scaled) this.scale(column, dark);
    else this.categories(column, column.categoryColours(dark, grey));
  }

  categories(column, colours) {
    const list = element("ul");
    const codes = column.order.slice(0, MAX_ENTRIES);
    if (column.counts[column.names.length]) codes.push(column.names.length);
    for (const code of codes) {
      const item = element("li");
      item.append(this.entry(column, code, colours[code]));
      list.append(item);
    }
    this.box.append(list);
    const more = column.order.length - MAX_ENTRIES;
    if (more > 0) this.box.append(element("p", "note", `and ${counted(more)} more; use the search to find them`));
  }

  entry(column, code, colour) {
    const button = element("button", "entry");
    button.type = "button";
    const swatch = element("span", "swatch");
    swatch.style.background = cssColour(colour);
    const missing = code === column.names.length;
    button.append(swatch, element("span", missing ? "name missing" : "name", missing ? "missing" : column.names[code]));
    button.append(element("span", "count", counted(column.counts[code])));
    button.setAttribute("aria-pressed", this.lit.has(code));
    button.addEventListener("click", () => {
      if (!this.lit.delete(code)) this.lit.add(code);
      button.setAttribute("aria-pressed", this.lit.has(code));
      this.onChange();
    });
    return button;
  }

  scale(column, dark) {
    const bar = element("div", "scale");
    const stops = Array.from({ length: 12 }, (_, i) => cssColour(scaleColour(i / 11, dark)));
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const { low, high, below, above } = column.range();
    const say = (value) => (column.kind === "time" ? column.time(value) : brief(value));
    const ends = element("div", "ends");
    ends.append(element("span", "", (below ? "≤ " : "") + say(low)));
    ends.append(element("span", "", (above ? "≥ " : "") + say(high)));
    this.box.append(bar, ends);
  }

  clear() {
    this.lit.clear();
    for (const button of this.box.querySelectorAll("[aria-pressed=true]")) button.setAttribute("aria-pressed", "false");
  }

  /** Mask of the rows whose categories are highlighted, or null if none is. */
  mask() {
    if (!this.lit.size) return null;
    const on = new Uint8Array(this.column.names.length + 1);
    for (const code of this.lit) on[code] = 1;
    return Uint8Array.from(this.column.values, (code) => on[code]);
  }
}
