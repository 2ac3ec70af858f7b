// The legend of a column. Each category is a button that highlights its points; a scale has a histogram.

import { cssColour } from "./colour.js";
import { button, element } from "./dom.js";
import { Histogram } from "./histogram.js";
import { counted, plural } from "./number.js";

const MAX_ENTRIES = 200;

export class Legend {
  constructor(box, onChange) {
    this.box = box;
    this.onChange = onChange;
    /** @type {import("./column.js").Column | null} */
    this.column = null;
    /** @type {Set<number>} */
    this.lit = new Set(); // codes of categories
    this.entries = new Map(); // buttons by code
    /** @type {Histogram | null} */
    this.histogram = null;
  }

  /**
   * Show a column in the colours of a theme, or in one colour.
   * @param {number[] | null} grey
   */
  show(column, dark = false, grey = null) {
    const bounds = column === this.column && column?.scaled ? this.histogram?.bounds : null;
    if (column !== this.column) this.lit.clear();
    this.column = column;
    this.histogram = null;
    this.entries.clear();
    this.box.replaceChildren();
    if (!column) return;
    if (!column.scaled) return this.categories(column, grey && column.categoryColours(dark, grey));
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
      item.append(this.entry(column, code, colours?.[code]));
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
    const name = element("span", missing ? "name missing" : "name", missing ? column.absent : column.names[code]);
    if (!missing && column.captions) name.append(element("small", "", column.captions[code]));
    if (colour) {
      made.style.setProperty("--tint", cssColour(colour));
      made.append(element("span", "swatch"));
    }
    made.append(name, element("span", "count"));
    made.setAttribute("aria-pressed", this.lit.has(code));
    this.entries.set(code, made);
    return made;
  }

  /** Tell how many of the rows in a mask, or of all, each value has. */
  tell(mask) {
    if (this.histogram) return this.histogram.tell(mask);
    const { column } = this;
    if (!column || !this.entries.size) return;
    const counts = mask ? column.countsIn(mask) : column.counts;
    const most = column.counts.reduce((a, b) => Math.max(a, b));
    for (const [code, made] of this.entries) {
      const [some, all] = [counts[code], column.counts[code]];
      made.style.setProperty("--all", `${(100 * all) / most}%`);
      made.style.setProperty("--some", `${(100 * some) / most}%`);
      const of = some < all ? `${counted(some)} of ` : "";
      made.lastChild.textContent = of + counted(all);
      const name = [column.name, made.querySelector(".name").textContent].join(" ");
      const shown = !this.lit.size || this.lit.has(code) ? "shown" : "faded";
      made.setAttribute("aria-label", `${name}, ${of}${plural(all, "point")}, ${shown}`);
    }
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
