// Rows as CSV (RFC 4180). Text is always quoted and never altered.

import { shortest } from "./number.js";

const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

export function rowsAsCSV(rows, columns, place) {
  const lines = [["row", ...["x", "y", "z"].slice(0, place(0).length), ...columns.map((column) => quoted(column.name))].join(",")];
  for (const row of rows) {
    const values = columns.map((column) => {
      const text = column.text(row);
      return column.kind === "number" || column.numeric || column.isMissing(row) ? text : quoted(text);
    });
    lines.push([row, ...place(row).map(shortest), ...values].join(","));
  }
  return lines.join("\r\n") + "\r\n";
}
