// The selection against the rest: means and shares, and effect sizes that can be compared between columns.

import { button, element } from "./dom.js";
import { brief, percent } from "./number.js";

const MAX_CATEGORIES = 256; // columns with more are names, of which shares say nothing
const MAX_PER_COLUMN = 4;
const MAX_EFFECTS = 24;

/**
 * Means of a column among the selected rows and among the others, with Cohen's d.
 * @returns {{name: string, inside: string, outside: string, effect: number}[]}
 */
function compareMeans(column, mask) {
  const values = column.amounts();
  const count = [0, 0];
  const sum = [0, 0];
  for (let row = 0; row < values.length; row++) {
    if (Number.isFinite(values[row])) {
      count[mask[row]]++;
      sum[mask[row]] += values[row];
    }
  }
  if (!count[0] || !count[1]) return [];
  const mean = sum.map((total, side) => total / count[side]);
  let squares = 0;
  for (let row = 0; row < values.length; row++) {
    if (Number.isFinite(values[row])) squares += (values[row] - mean[mask[row]]) ** 2;
  }
  const spread = Math.sqrt(squares / Math.max(1, count[0] + count[1] - 2));
  const effect = mean[1] === mean[0] ? 0 : (mean[1] - mean[0]) / spread;
  const say = (value) => (column.kind === "time" ? column.time(Math.round(value)) : brief(value));
  return [{ name: column.name, inside: say(mean[1]), outside: say(mean[0]), effect }];
}

/** Shares of the categories of a column, with Cohen's h; of booleans, only that of True. */
function compareShares(column, mask) {
  const counts = [0, 1].map(() => new Uint32Array(column.names.length + 1));
  for (let row = 0; row < mask.length; row++) counts[mask[row]][column.values[row]]++;
  const totals = counts.map((some) => some.reduce((sum, one) => sum + one, 0) - some[column.names.length]);
  if (!totals[0] || !totals[1]) return [];
  return column.names.map((name, code) => {
    const [outside, inside] = counts.map((some, side) => some[code] / totals[side]);
    const effect = 2 * Math.asin(Math.sqrt(inside)) - 2 * Math.asin(Math.sqrt(outside));
    const title = column.boolean ? column.name : `${column.name}: ${column.captions?.[code] || name}`;
    return { name: title, inside: percent(inside), outside: percent(outside), effect };
  }).slice(column.boolean ? 1 : 0).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect)).slice(0, MAX_PER_COLUMN);
}

function compared(columns, mask) {
  return columns.flatMap((column) => {
    if (column.kind !== "category" || column.scaled) return compareMeans(column, mask);
    return column.names.length > MAX_CATEGORIES || column.distinct ? [] : compareShares(column, mask);
  });
}

export class Comparison {
  constructor(box, columns, features) {
    this.box = box;
    this.columns = columns;
    this.features = features;
    this.body = box.querySelector("tbody");
    this.note = box.querySelector(".note");
    /** @type {Uint8Array | null} */
    this.mask = null;
    this.more = button("plain", `Compare all ${features?.names.length} features`, () => this.compareFeatures());
    this.more.hidden = !features;
    box.append(this.more);
  }

  show(mask) {
    this.mask = mask;
    this.box.hidden = !mask || mask.every(Boolean);
    if (mask && !this.box.hidden) this.list(compared(this.columns, mask));
  }

  async compareFeatures() {
    const { mask } = this;
    if (!mask) return;
    const lines = compared(this.columns, mask);
    for (let i = 0; i < this.features.names.length; i++) {
      lines.push(...compareMeans(await this.features.column(i), mask));
      if (this.mask !== mask) return; // the selection has changed
      if (i % 50 === 49) this.more.textContent = `${i + 1} of ${this.features.names.length} features`;
    }
    this.more.textContent = `Compare all ${this.features.names.length} features`;
    this.list(lines);
  }

  list(lines) {
    const sorted = lines.filter(({ effect }) => Math.abs(effect) >= 0.005).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
    this.note.textContent = sorted.length > MAX_EFFECTS ? `the ${MAX_EFFECTS} largest effects of ${sorted.length}` : "";
    this.body.replaceChildren(...sorted.slice(0, MAX_EFFECTS).map(({ name, inside, outside, effect }) => {
      const line = element("tr");
      const head = element("th", "", name);
      head.scope = "row";
      head.title = name;
      const size = element("td", "number", `${effect > 0 ? "+" : "−"}${Math.min(99, Math.abs(effect)).toFixed(2)}`);
      line.append(head, element("td", "number", inside), element("td", "number", outside), size);
      return line;
    }));
  }
}
