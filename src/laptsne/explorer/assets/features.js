// Features that the map was made of, such as genes: many more than columns, so each is unpacked when it is asked for.

import { Column } from "./column.js";
import { inflated } from "./data.js";
import { element } from "./dom.js";

const MISSING = 255;
const LEVELS = 254; // values are stored as multiples of their range divided by this
const MAX_OFFERED = 50;

export class Features {
  /** `described` has the names, and of each feature its smallest and largest value and where its bytes end. */
  constructor(described, read, palette) {
    this.names = described.names;
    this.described = described;
    this.read = read;
    this.palette = palette;
    this.columns = new Map();
    /** @type {Uint8Array | null} */
    this.bytes = null; // of all features, compressed
  }

  /** The feature with this index, as a column. */
  async column(index) {
    if (this.columns.has(index)) return this.columns.get(index);
    const bytes = (this.bytes ??= /** @type {Uint8Array} */ (this.read()));
    const { ends, low, high } = this.described;
    const packed = bytes.subarray(index ? ends[index - 1] : 0, ends[index]);
    const levels = new Uint8Array(await inflated(packed));
    const step = (high[index] - low[index]) / LEVELS;
    const values = Float32Array.from(levels, (level) => (level === MISSING ? NaN : low[index] + level * step));
    const column = new Column({ name: this.names[index], kind: "number", values }, this.palette);
    if (this.columns.size < 20) this.columns.set(index, column);
    return column;
  }

  /** Complete what is typed into a field, and call `onChoose` with the index of a feature. */
  offer(field, list, onChoose) {
    const index = new Map(this.names.map((name, i) => [name.toLowerCase(), i]));
    field.placeholder = `Any of ${this.names.length} features`;
    field.addEventListener("input", () => {
      const text = field.value.trim().toLowerCase();
      const found = this.names.filter((name) => name.toLowerCase().includes(text)).slice(0, MAX_OFFERED);
      list.replaceChildren(...found.map((name) => {
        const option = element("option");
        option.value = name;
        return option;
      }));
      if (index.has(text)) onChoose(index.get(text));
    });
  }
}
