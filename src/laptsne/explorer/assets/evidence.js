// The evidence for the clusters: one line per cluster, which selects it.

import { cssColour } from "./colour.js";
import { button, element } from "./dom.js";
import { brief, counted } from "./number.js";

export class Evidence {
  constructor(panel, { rows }, column, onSelect) {
    this.panel = panel;
    this.column = column;
    this.rows = rows;
    this.onSelect = onSelect;
    panel.hidden = false;
    panel.querySelector("summary").textContent = `Clusters (${rows.length})`;
  }

  /** List the clusters in the colours of the theme. */
  show(dark, grey) {
    const colours = this.column.categoryColours(dark, grey);
    this.panel.querySelector("ul").replaceChildren(...this.rows.map((row) => {
      const item = element("li");
      const code = this.column.names.indexOf(row.cluster);
      const line = button("entry", "", (event) => this.select(code, event.shiftKey ? "add" : "set"));
      const swatch = element("span", "swatch");
      swatch.style.background = cssColour(colours[code] ?? grey);
      const name = element("span", "name", row.cluster);
      name.append(element("small", "", [this.column.captions?.[code], row.verdict].filter(Boolean).join(" · ")));
      line.append(swatch, name, element("span", "count", counted(row.size)));
      const figures = element("small", "figures", this.figures(row));
      item.append(line, figures);
      return item;
    }));
  }

  figures({ contrast, contrast_error: error, nearest, reciprocity, stability }) {
    const known = (value) => value !== null && value !== undefined;
    return [
      known(contrast) && `contrast ${brief(contrast)}${known(error) ? ` ± ${brief(error)}` : ""}`,
      known(nearest) && nearest !== -1 && `nearest ${nearest}`,
      known(reciprocity) && `reciprocity ${brief(reciprocity)}`,
      known(stability) && `stability ${brief(stability)}`,
    ].filter(Boolean).join(" · ");
  }

  select(code, mode) {
    const rows = [];
    this.column.values.forEach((value, row) => { if (value === code) rows.push(row); });
    this.onSelect(rows, mode);
  }
}
