// Columns: text, search and colours of their values.

import { categoryColour, packed, scaleColour } from "./colour.js";
import { brief, shortest } from "./number.js";

const MANY = 256; // with more categories than this, only the most frequent ones are coloured
const FREQUENT = 36;
const STEPS = 255; // of a continuous scale
const SAMPLE = 200000; // values of which percentiles are computed

export class Column {
  /** @param {import("./data.js").ColumnData} described */
  constructor(described, palette) {
    this.name = described.name;
    this.kind = described.kind;
    this.names = described.names ?? [];
    this.numeric = described.numeric ?? false;
    this.daily = described.daily ?? false;
    this.captions = described.captions ?? null; // of the categories, such as their words
    this.layers = described.layers ?? []; // nested groups of the categories, from fine to coarse
    this.merged = new Map(); // columns of layers
    this.isLayer = Boolean(described.groups);
    this.absent = described.missing ?? "missing";
    this.values = described.values;
    this.palette = palette;
    this.scaled = this.kind !== "category"; // whether a continuous colour scale is used
    this.order = []; // of the legend
    this.counts = new Uint32Array(0);
    this.extent = null;
    if (this.kind === "category") this.countCategories();
  }

  countCategories() {
    const counts = this.countsIn(null);
    this.counts = counts;
    const order = this.names.map((_, code) => code);
    if (this.names.length > MANY) order.sort((a, b) => counts[b] - counts[a] || a - b);
    this.order = order;
  }

  /** Number of rows in a mask, or of all rows, by category; the last ones are missing. */
  countsIn(mask) {
    const { values } = this;
    const counts = new Uint32Array(this.names.length + 1);
    for (let row = 0; row < values.length; row++) if (!mask || mask[row]) counts[values[row]]++;
    return counts;
  }

  /** Whether most rows have a value of their own, as names and texts have. */
  get distinct() {
    return this.kind === "category" && 2 * this.names.length > this.values.length;
  }

  get boolean() {
    return this.names.join() === "False,True";
  }

  isMissing(row) {
    return this.kind === "category" ? this.values[row] === this.names.length : Number.isNaN(this.values[row]);
  }

  /** The full value as text, "" if missing. */
  text(row) {
    const value = this.values[row];
    if (this.isMissing(row)) return "";
    if (this.kind === "category") return this.names[value];
    if (this.kind === "time") return this.time(value);
    return this.values instanceof Float32Array ? shortest(value) : String(value);
  }

  /** The value as displayed, rounded if it is a number. */
  shown(row) {
    if (this.isMissing(row)) return this.absent === "missing" ? "–" : this.absent;
    return this.kind === "number" ? brief(this.values[row]) : this.text(row);
  }

  /** Name of a category on the map. */
  caption(code) {
    return this.captions?.[code] || this.names[code];
  }

  /** The finest layer with at most the given number of groups, or the coarsest one, as a column. */
  layer(most) {
    if (this.names.length <= most || !this.layers.length) return this;
    const found = /** @type {any} */ (this.layers.find(({ names }) => names.length <= most) ?? this.layers.at(-1));
    if (!this.merged.has(found)) {
      const group = [...found.groups, found.names.length];
      const values = this.values.map((code) => group[code]);
      const name = `${this.name}\n${found.names.length}`;
      this.merged.set(found, new Column({ ...found, name, kind: "category", values }, this.palette));
    }
    return this.merged.get(found);
  }

  time(value) {
    const iso = new Date(value).toISOString();
    return this.daily ? iso.slice(0, 10) : iso.replace("T", " ").replace(/(\.000)?Z$/, "");
  }

  /** Mark the rows that match: names that contain the text, numbers equal to it. */
  match(text, found) {
    const wanted = text.toLowerCase();
    if (this.kind === "category") {
      const hits = this.names.map((name, code) => (this.numeric ? name === wanted : name.toLowerCase().includes(wanted))
        || Boolean(this.captions?.[code].includes(wanted)));
      hits.push(false);
      this.values.forEach((code, row) => { if (hits[code]) found[row] = 1; });
    } else if (this.kind === "time") {
      this.values.forEach((value, row) => {
        if (!Number.isNaN(value) && this.time(value).includes(wanted)) found[row] = 1;
      });
    } else if (Number.isFinite(Number(wanted))) {
      const number = this.values instanceof Float32Array ? Math.fround(Number(wanted)) : Number(wanted);
      this.values.forEach((value, row) => { if (value === number) found[row] = 1; });
    }
  }

  /** The values as numbers, NaN if missing. */
  amounts() {
    if (this.kind !== "category") return this.values;
    const table = [...this.names.map(Number), NaN];
    return Float64Array.from(this.values, (code) => table[code]);
  }

  /** Range of the colour scale: the 1st to the 99th percentile, so that outliers do not flatten the rest. */
  range() {
    if (this.extent) return this.extent;
    const amounts = this.amounts();
    const stride = Math.ceil(amounts.length / SAMPLE);
    const sample = new Float64Array(Math.ceil(amounts.length / stride));
    let [least, most] = [Infinity, -Infinity];
    for (let row = 0; row < amounts.length; row++) {
      if (row % stride === 0) sample[row / stride] = amounts[row];
      if (Number.isFinite(amounts[row])) {
        if (amounts[row] < least) least = amounts[row];
        if (amounts[row] > most) most = amounts[row];
      }
    }
    const sorted = sample.filter(Number.isFinite).sort();
    const last = sorted.length - 1;
    if (least > most) return (this.extent = { low: 0, high: 0, below: false, above: false });
    let [low, high] = last < 0 ? [least, most] : [sorted[Math.floor(last * 0.01)], sorted[Math.ceil(last * 0.99)]];
    if (low === high) [low, high] = [least, most];
    return (this.extent = { low, high, below: least < low, above: most > high });
  }

  /** One colour per category, followed by grey for missing values. */
  categoryColours(dark, grey) {
    const colours = this.names.map((_, code) => categoryColour(this.palette, code, dark));
    if (this.names.length > MANY) {
      colours.fill(grey);
      this.order.slice(0, FREQUENT).forEach((code, rank) => {
        colours[code] = categoryColour(this.palette, rank, dark);
      });
    }
    return [...colours, grey];
  }

  /** Write the colour of each row to the lower three bytes of `target`. */
  paint(target, dark, grey) {
    const colours = this.scaled ? Array.from({ length: STEPS + 1 }, (_, i) => scaleColour(i / STEPS, dark))
      : this.categoryColours(dark, grey);
    const table = Uint32Array.from(colours, packed);
    const { values } = this;
    if (!this.scaled) {
      for (let row = 0; row < values.length; row++) target[row] = (target[row] & 0xff000000) | table[values[row]];
      return;
    }
    const amounts = this.amounts();
    const { low, high } = this.range();
    const [unit, plain] = [high > low ? STEPS / (high - low) : 0, packed(grey)];
    for (let row = 0; row < amounts.length; row++) {
      const value = amounts[row];
      const step = unit ? Math.round(Math.min(STEPS, Math.max(0, (value - low) * unit))) : STEPS >> 1;
      target[row] = (target[row] & 0xff000000) | (value === value ? table[step] : plain);
    }
  }
}
