// Columns: text, search and colours of their values.

const MANY = 256; // with more categories than this, only the most frequent ones are coloured
const FREQUENT = 36;

class Column {
  constructor(described, palette) {
    Object.assign(this, described);
    this.palette = palette;
    this.scaled = this.kind !== "category"; // whether a continuous colour scale is used
    if (this.kind === "category") this.countCategories();
  }

  countCategories() {
    this.counts = new Uint32Array(this.names.length + 1);
    for (const code of this.values) this.counts[code]++;
    const order = this.names.map((_, code) => code);
    if (this.names.length > MANY) order.sort((a, b) => this.counts[b] - this.counts[a] || a - b);
    this.order = order; // of the legend
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
    if (this.isMissing(row)) return "–";
    return this.kind === "number" ? brief(this.values[row]) : this.text(row);
  }

  time(value) {
    const iso = new Date(value).toISOString();
    return this.daily ? iso.slice(0, 10) : iso.replace("T", " ").replace(/(\.000)?Z$/, "");
  }

  /** Mark the rows that match: names that contain the text, numbers equal to it. */
  match(text, found) {
    const wanted = text.toLowerCase();
    if (this.kind === "category") {
      const hits = this.names.map((name) => (this.numeric ? name === wanted : name.toLowerCase().includes(wanted)));
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

  amount(row) {
    if (this.kind !== "category") return this.values[row];
    return this.isMissing(row) ? NaN : Number(this.names[this.values[row]]);
  }

  /** Range of the colour scale: the 1st to the 99th percentile, so that outliers do not flatten the rest. */
  range() {
    if (this.extent) return this.extent;
    const amounts = new Float64Array(this.values.length).map((_, row) => this.amount(row));
    const sorted = amounts.filter(Number.isFinite).sort();
    const last = sorted.length - 1;
    if (last < 0) return (this.extent = { low: 0, high: 0, below: false, above: false });
    let [low, high] = [sorted[Math.floor(last * 0.01)], sorted[Math.ceil(last * 0.99)]];
    if (low === high) [low, high] = [sorted[0], sorted[last]];
    return (this.extent = { low, high, below: sorted[0] < low, above: sorted[last] > high });
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

  /** Write the colour of each row to the red, green and blue channels of `target`. */
  paint(target, dark, grey) {
    const steps = 255;
    const table = this.scaled ? Array.from({ length: steps + 1 }, (_, i) => scaleColour(i / steps, dark))
      : this.categoryColours(dark, grey);
    const { low, high } = this.scaled ? this.range() : {};
    for (let row = 0; row < this.values.length; row++) {
      let colour = grey;
      if (!this.scaled) colour = table[this.values[row]];
      else {
        const value = this.amount(row);
        const share = high > low ? (value - low) / (high - low) : 0.5;
        if (!Number.isNaN(value)) colour = table[Math.round(Math.min(1, Math.max(0, share)) * steps)];
      }
      target[4 * row] = colour[0];
      target[4 * row + 1] = colour[1];
      target[4 * row + 2] = colour[2];
    }
  }
}
