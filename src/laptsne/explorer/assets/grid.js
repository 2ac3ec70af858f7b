// Spatial index: points sorted into the cells of a grid, for nearest-point queries.

class Grid {
  constructor(xs, ys) {
    Object.assign(this, { xs, ys });
    this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(xs.length / 2))));
    this.starts = new Uint32Array(this.side * this.side + 1);
    this.rows = new Uint32Array(xs.length);
    const cells = new Uint32Array(xs.length);
    for (let i = 0; i < xs.length; i++) {
      cells[i] = this.index(ys[i]) * this.side + this.index(xs[i]);
      this.starts[cells[i] + 1]++;
    }
    for (let c = 0; c < this.side * this.side; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    for (let i = 0; i < xs.length; i++) this.rows[next[cells[i]]++] = i;
  }

  index(value) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(value * this.side)));
  }

  /** The nearest row within `reach` of a position for which `counts` is true, or -1. */
  nearest(x, y, reach, counts = () => true) {
    let best = -1;
    let least = reach * reach;
    for (let j = this.index(y - reach); j <= this.index(y + reach); j++) {
      const first = this.starts[j * this.side + this.index(x - reach)];
      const last = this.starts[j * this.side + this.index(x + reach) + 1];
      for (let k = first; k < last; k++) {
        const row = this.rows[k];
        const distance = (this.xs[row] - x) ** 2 + (this.ys[row] - y) ** 2;
        if (distance <= least && counts(row)) [best, least] = [row, distance];
      }
    }
    return best;
  }
}
