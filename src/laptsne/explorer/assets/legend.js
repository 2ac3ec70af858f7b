// The legend of the colouring column. Each category is a button that highlights its points; a scale has a histogram.

import { cssColour } from "./colour.js";
import { button, element } from "./dom.js";
import { Histogram } from "./histogram.js";
import { counted } from "./number.js";

const MAX_ENTRIES = 200;

export class Legend {
  constructor(box, onChange) {
    this.box = box;
    this.onChange = onChange;
    /** @type {import("./column.js").Column | null} */
    this.column = null;
    /** @type {Set<number>} */
    this.lit = new Set(); // codes of categories
    /** @type {Histogram | null} */
    this.histogram = null;
  }

  show(column, dark, grey) {
    const bounds = column === this.column && column?.scaled ? this.histogram?.bounds : null;
    if (column !== this.column) this.lit.clear();
    this.column = column;
    this.histogram = null;
    this.box.replaceChildren();
    if (!column) return;
    if (!column.scaled) return this.categories(column, column.categoryColours(dark, grey));
    this.histogram = new Histogram(column, dark, this.onChange);
    if (bounds) this.histogram.bounds = bounds;
    this.box.append(this.histogram.box);
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
    const missing = code === column.names.length;
    const made = button("entry", "", () => {
      if (!this.lit.delete(code)) this.lit.add(code);
      made.setAttribute("aria-pressed", this.lit.has(code));
      this.onChange();
    });
    const swatch = element("span", "swatch");
    swatch.style.background = cssColour(colour);
    const name = element("span", missing ? "name missing" : "name", missing ? column.absent : column.names[code]);
    if (!missing && column.captions) name.append(element("small", "", column.captions[code]));
    made.append(swatch, name, element("span", "count", counted(column.counts[code])));
    made.setAttribute("aria-pressed", this.lit.has(code));
    return made;
  }

  clear() {
    this.lit.clear();
    if (this.histogram) this.histogram.bounds = [0, 1];
    for (const pressed of this.box.querySelectorAll("[aria-pressed=true]")) pressed.setAttribute("aria-pressed", "false");
  }

  /** Mask of the rows that are highlighted, or null if all are. */
  mask() {
    if (this.histogram) return this.histogram.mask();
    if (!this.column || !this.lit.size) return null;
    const { values, names } = this.column;
    const on = new Uint8Array(names.length + 1);
    for (const code of this.lit) on[code] = 1;
    const mask = new Uint8Array(values.length);
    for (let row = 0; row < mask.length; row++) mask[row] = on[values[row]];
    return mask;
  }
}
