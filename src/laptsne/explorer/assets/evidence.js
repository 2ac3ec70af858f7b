// The evidence for the clusters: one line per cluster, which selects it.

import { cssColour } from "./colour.js";
import { button, element } from "./dom.js";
import { clamp, counted, plural } from "./number.js";

const LEAST = 1e-6; // chance of a full bar

export class Evidence {
  constructor(panel, { rows }, column, onSelect) {
    this.panel = panel;
    this.column = column;
    this.rows = rows;
    this.onSelect = onSelect;
    panel.hidden = false;
    panel.querySelector("summary").textContent = `Clusters (${rows.length})`;
  }

  /** List the clusters, in the colours of the theme if points are coloured by cluster. */
  show(dark, grey, colouring) {
    const colours = colouring === this.column && !colouring.scaled && this.column.categoryColours(dark, grey);
    this.panel.querySelector("ul").replaceChildren(...this.rows.map((row) => {
      const item = element("li");
      const code = this.column.names.indexOf(row.cluster);
      const line = button("entry", "", (event) => this.select(code, event.shiftKey ? "add" : "set"));
      if (colours) {
        line.style.setProperty("--tint", cssColour(colours[code] ?? grey));
        line.append(element("span", "swatch"));
      }
      const name = element("span", "name", row.cluster);
      if (this.column.captions?.[code]) name.append(element("small", "", this.column.captions[code]));
      line.setAttribute("aria-label", `${this.column.name} ${name.textContent}, ${row.verdict}, ${plural(row.size, "point")}`);
      line.append(name, this.verdict(row), element("span", "count", counted(row.size)));
      item.append(line);
      return item;
    }));
  }

  /** The verdict after a bar, which is longer for a smaller chance; the figure is its tooltip. */
  verdict({ chance, percent, nearest, verdict }) {
    const made = element("small", "verdict");
    const bar = element("span", "bar");
    bar.style.setProperty("--share", `${100 * clamp(Math.log(chance) / Math.log(LEAST), 0, 1)}%`);
    made.append(verdict, bar);
    made.title = nearest < 0 ? "Apart from all other clusters"
      : `Data without clusters look as divided as this cluster and ${nearest} in ${percent} of cases`;
    return made;
  }

  select(code, mode) {
    const rows = [];
    this.column.values.forEach((value, row) => { if (value === code) rows.push(row); });
    this.onSelect(rows, mode);
  }
}
