// A chart of each column: its categories or its histogram, of the points shown beside all points. Charts are filters.

import { element } from "./dom.js";
import { Legend } from "./legend.js";

const OPEN = 3; // charts at first

export class Charts {
  /** `onChange` is called when a chart filters, and `onAdd` with the legend of one that is added. */
  constructor(panel, columns, onChange, onAdd) {
    this.panel = panel;
    this.onAdd = onAdd;
    this.started = false;
    this.charts = columns.filter(varies).map((column) => {
      const box = element("details", "column");
      const legend = new Legend(element("div", "of-column"), onChange);
      box.append(element("summary", "", column.name), legend.box);
      box.addEventListener("toggle", () => this.draw());
      return { box, column, legend };
    });
    panel.append(...this.charts.map(({ box }) => box));
  }

  /** Open the first charts after the first frame, which does not wait for them. */
  start() {
    if (this.started) return;
    this.started = true;
    for (const { box } of this.charts.filter((chart) => !chart.box.hidden).slice(0, OPEN)) box.open = true;
  }

  /** Leave out the column by which points are coloured: the legend is its chart. */
  omit(column) {
    for (const chart of this.charts) {
      chart.box.hidden = chart.column === column;
      if (chart.box.hidden) chart.legend.show(null);
    }
    this.panel.hidden = this.charts.every(({ box }) => box.hidden);
    this.draw();
  }

  draw() {
    for (const { box, column, legend } of this.charts) {
      if (!box.open || box.hidden || legend.column) continue;
      legend.show(column);
      this.onAdd(legend);
    }
  }

  get legends() {
    return this.charts.map(({ legend }) => legend).filter(({ column }) => column);
  }
}

/** Whether rows have values in common, but not all one value. */
function varies({ kind, distinct, names }) {
  return kind !== "category" || (!distinct && names.length > 1);
}
