// The fragment of the address, which restores the view, the slider, the colour and the selection.

const MAX_LENGTH = 60000; // of the selection; some programs cut longer addresses

/** Ascending rows as text: differences in base 36, those of consecutive rows as a length. */
export function encodeRows(rows) {
  const parts = [];
  for (let i = 0, next = 0; i < rows.length; ) {
    let length = 1;
    while (rows[i + length] === rows[i] + length) length++;
    parts.push((rows[i] - next).toString(36) + (length > 1 ? `-${length.toString(36)}` : ""));
    next = rows[i] + length;
    i += length;
  }
  return parts.join(".");
}

export function decodeRows(text, n) {
  const rows = [];
  let next = 0;
  for (const part of text ? text.split(".") : []) {
    const [skipped, length = 1] = part.split("-").map((digits) => parseInt(digits, 36));
    if (!(skipped >= 0 && length > 0 && next + skipped + length <= n)) return [];
    for (let i = 0; i < length; i++) rows.push(next + skipped + i);
    next += skipped + length;
  }
  return rows;
}

export class Link {
  /** `state` has a getter and a setter of plain values. */
  constructor(state) {
    this.state = state;
    this.written = location.hash;
    this.waiting = 0;
    this.restore();
    addEventListener("hashchange", () => this.restore());
  }

  restore() {
    if (location.hash === this.written && this.waiting) return;
    const values = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (Object.keys(values).length) this.state.set(values);
  }

  /** Write the state soon. */
  update() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.write(), 300);
  }

  write() {
    const values = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state.get())) {
      if (value !== "" && value.length < MAX_LENGTH) values.set(name, value);
    }
    const hash = values.size || [...values].length ? `#${values}` : "";
    if (hash === location.hash) return;
    this.written = hash;
    try {
      history.replaceState(null, "", hash || location.pathname + location.search);
    } catch { /* not allowed in some frames */ }
  }
}
