// Small charts over contraction, with a cursor that follows the slider.

import { element, shape } from "./dom.js";
import { between, brief } from "./number.js";

const CHART = { width: 280, height: 46, side: 8, top: 6, bottom: 6 };

export class Chart {
  /** Curves are lists of values, one per map, null if unknown. `tell` formats the values at the cursor; an axis covers at least `span`. */
  constructor(title, curves, { tell = ([value]) => brief(value), help = "", log = false, span = 0 } = {}) {
    this.curves = curves;
    this.tell = tell;
    this.log = log;
    this.span = span;
    this.last = curves[0].length - 1;
    this.box = element("figure", "chart");
    const known = curves.flat().filter((value) => value !== null).map((value) => this.raised(value));
    this.low = Math.min(...known);
    this.high = Math.max(...known);
    const caption = element("figcaption", "", title);
    this.value = element("output");
    // The axis does not start at zero, so the range is stated.
    if (!log) caption.append(element("small", "", `${tell([this.low])} to ${tell([this.high])}`));
    caption.append(this.value);
    caption.title = help;
    const plot = element("div", "plot");
    const svg = shape("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, "aria-hidden": "true" });
    const kind = curves.length > 1 ? "curve many" : "curve";
    svg.append(...curves.map((curve) => shape("path", { d: this.line(curve), class: kind })));
    this.cursor = element("div", "cursor");
    this.dot = element("div", "dot");
    plot.append(svg, this.cursor, ...(curves.length === 1 ? [this.dot] : []));
    this.box.append(caption, plot);
  }

  raised(value) {
    return this.log ? Math.log10(Math.max(value, 1e-6)) : value;
  }

  across(at) {
    return CHART.side + ((CHART.width - 2 * CHART.side) * at) / this.last;
  }

  up(value) {
    const span = Math.max(this.high - this.low, this.span);
    const share = 0.5 + (span && (this.raised(value) - (this.low + this.high) / 2) / span);
    return CHART.height - CHART.bottom - share * (CHART.height - CHART.top - CHART.bottom);
  }

  line(curve) {
    let pen = "M";
    let path = "";
    curve.forEach((value, i) => {
      if (value === null) pen = "M";
      else {
        path += `${pen}${this.across(i).toFixed(1)} ${this.up(value).toFixed(1)}`;
        pen = "L";
      }
    });
    return path;
  }

  move(at) {
    const values = this.curves.map((curve) => this.straight(curve, at)).filter((value) => value !== null);
    this.value.textContent = values.length ? this.tell(values) : "–";
    // Moved by CSS transforms: redrawing the curves would take longer than drawing the map.
    const across = (100 * this.across(at)) / CHART.width;
    this.cursor.style.transform = `translateX(${across}%)`;
    this.dot.hidden = !values.length;
    if (!values.length) return;
    this.dot.style.transform = `translate(${across}%, ${(100 * this.up(values[0])) / CHART.height}%)`;
  }

  /** The value of the line drawn between two maps. */
  straight(curve, at) {
    if (!this.log) return between(curve, at);
    const raised = between(curve.map((value) => (value === null ? null : this.raised(value))), at);
    return raised === null ? null : 10 ** raised;
  }
}
