// Histogram of a column on a continuous scale, with two sliders that filter by its values.

import { cssColour, scaleColour } from "./colour.js";
import { element, shape } from "./dom.js";
import { brief, plural } from "./number.js";

const BINS = 48;
const TICKS = 1000; // of the sliders
const HEIGHT = 44;

export class Histogram {
  constructor(column, dark, onChange) {
    this.column = column;
    this.onChange = onChange;
    this.amounts = column.amounts();
    this.box = element("div", "histogram");
    this.most = 1; // rows in the fullest bin
    this.bins = new Uint8Array(this.amounts.length); // BINS if missing
    /** @type {any[]} */
    this.shown = [];
    this.ends = [0, TICKS].map((at, i) => this.slider(at, i));
    this.note = element("p", "note");
    this.box.append(this.bars(dark), ...this.ends, this.scale(), this.note);
  }

  bars(dark) {
    const { low, high } = this.column.range();
    for (let row = 0; row < this.amounts.length; row++) {
      const share = high > low ? (this.amounts[row] - low) / (high - low) : this.amounts[row] - low + 0.5;
      this.bins[row] = share === share ? Math.min(BINS - 1, Math.max(0, Math.floor(share * BINS))) : BINS;
    }
    const counts = this.countsIn(null);
    this.most = Math.max(1, ...counts);
    const svg = shape("svg", { viewBox: `0 0 ${BINS} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const all = Array.from(counts, (count) => `V${HEIGHT - this.height(count)}h1`);
    svg.append(shape("path", { d: `M0 ${HEIGHT}${all.join("")}V${HEIGHT}` }));
    this.shown = Array.from(counts, (_, i) => {
      const fill = cssColour(scaleColour((i + 0.5) / BINS, dark));
      return shape("rect", { x: i + 0.05, width: 0.9, fill });
    });
    svg.append(...this.shown);
    this.tell(null);
    return svg;
  }

  /** Number of rows in a mask, or of all rows, by bin. */
  countsIn(mask) {
    const counts = new Uint32Array(BINS + 1);
    for (let row = 0; row < this.bins.length; row++) if (!mask || mask[row]) counts[this.bins[row]]++;
    return counts.subarray(0, BINS);
  }

  height(count) {
    return count ? Math.max(1, HEIGHT * Math.sqrt(count / this.most)) : 0; // root: small bins remain visible
  }

  /** Show the rows in a mask, or all, before a shadow of all. */
  tell(mask) {
    this.countsIn(mask).forEach((count, i) => {
      const height = this.height(count);
      this.shown[i].setAttribute("y", HEIGHT - height);
      this.shown[i].setAttribute("height", height);
    });
  }

  slider(at, i) {
    const slider = element("input", "bound");
    Object.assign(slider, { type: "range", min: 0, max: TICKS, value: at });
    slider.setAttribute("aria-label", `${i ? "Largest" : "Smallest"} ${this.column.name} shown`);
    slider.addEventListener("input", () => {
      const [first, last] = this.ends.map((end) => Number(end.value));
      if (first > last) slider.value = i ? first : last;
      this.onChange();
    });
    return slider;
  }

  scale() {
    const { low, high, below, above } = this.column.range();
    const ends = element("div", "ends");
    ends.append(element("span", "", (below ? "≤ " : "") + this.say(low)));
    ends.append(element("span", "", (above ? "≥ " : "") + this.say(high)));
    return ends;
  }

  say(value) {
    return this.column.kind === "time" ? this.column.time(value) : brief(value);
  }

  /** The sliders at these shares of the range, from 0 to 1. */
  get bounds() {
    return this.ends.map((end) => Number(end.value) / TICKS);
  }

  set bounds(shares) {
    this.ends.forEach((end, i) => { end.value = shares[i] * TICKS; });
  }

  /** Mask of the rows between the sliders, or null if these are at the ends. A slider at an end excludes no value. */
  mask() {
    const [first, last] = this.bounds;
    this.note.textContent = "";
    if (first === 0 && last === 1) return null;
    const { low, high } = this.column.range();
    const from = first === 0 ? -Infinity : low + first * (high - low);
    const to = last === 1 ? Infinity : low + last * (high - low);
    const mask = new Uint8Array(this.amounts.length);
    let count = 0;
    for (let row = 0; row < mask.length; row++) {
      if (this.amounts[row] >= from && this.amounts[row] <= to) {
        mask[row] = 1;
        count++;
      }
    }
    const [least, most] = [from === -Infinity ? "" : `≥ ${this.say(from)}`, to === Infinity ? "" : `≤ ${this.say(to)}`];
    this.note.textContent = `${plural(count, "point")} ${[least, most].filter(Boolean).join(" and ")}`;
    return mask;
  }
}
