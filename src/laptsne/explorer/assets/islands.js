// Islands: where the points of a category lie together in the map.

import { UNIT } from "./places.js";

const CELLS = 32; // per side of the map: gaps narrower than one of them do not separate islands
const MIN_SHARE = 0.12; // of the points of a category, and at least three, that an island must have to be named
const THIN = 2000; // cells with fewer than one in so many points of their category count as empty
const CROWD = 2; // points per cell, on average; of categories with fewer, cells are joined
const MAX_ROWS = 64; // at the densest place of an island

/**
 * The islands of each category in one map, the largest first: its groups of points in adjacent cells that have at least
 * 12 % of its points, or else the largest group; of a group of categories, the largest alone. `rows` are points at the densest place.
 * @returns {{code: number, size: number, cell: number, most: number, shift: number, rows: number[]}[]}
 */
export function islands(positions, { values, names, counts, isLayer }) {
  const [n, area] = [values.length, CELLS * CELLS];
  const filled = new Uint32Array(names.length * area);
  const cells = new Uint16Array(n);
  const cellOf = (i) => Math.min(CELLS - 1, ((positions[i] * CELLS) / UNIT) | 0);
  for (let row = 0; row < n; row++) {
    cells[row] = cellOf(2 * row + 1) * CELLS + cellOf(2 * row);
    if (values[row] < names.length) filled[values[row] * area + cells[row]]++;
  }
  const found = names.map((_, code) => {
    if (!counts[code]) return [];
    let [grid, shift] = [filled.subarray(code * area, (code + 1) * area).map((count) => (count * THIN < counts[code] ? 0 : count)), 0];
    while (CELLS >> shift > 4 && grid.reduce((sum, count) => sum + (count ? CROWD : 0), 0) > counts[code]) {
      grid = joined(grid, CELLS >> shift++);
    }
    const parts = groups(grid, CELLS >> shift).sort((a, b) => b.size - a.size);
    const large = parts.filter(({ size }, i) => !i || (!isLayer && size >= Math.max(MIN_SHARE * counts[code], 3)));
    return large.map((part) => ({ ...part, code, shift, rows: /** @type {number[]} */ ([]) }));
  });
  for (let row = 0; row < n; row++) {
    for (const { rows, cell, shift } of found[values[row]] ?? []) {
      const side = CELLS >> shift;
      const [x, y] = [(cells[row] % CELLS) >> shift, Math.floor(cells[row] / CELLS) >> shift];
      const near = Math.abs(x - (cell % side)) <= 1 && Math.abs(y - Math.floor(cell / side)) <= 1;
      if (near && rows.length < MAX_ROWS) rows.push(row);
    }
  }
  return found.flat().sort((a, b) => b.size - a.size || a.code - b.code);
}

/** A grid with four cells in one. */
function joined(grid, side) {
  const coarse = new Uint32Array(grid.length / 4);
  grid.forEach((count, i) => { coarse[((i / side) >> 1) * (side / 2) + ((i % side) >> 1)] += count; });
  return coarse;
}

/** Groups of adjacent cells with points: number of points, and the cell with most points in and around it. */
function groups(grid, side) {
  const found = [];
  const seen = new Uint8Array(grid.length);
  for (let start = 0; start < grid.length; start++) {
    if (!grid[start] || seen[start]) continue;
    const group = { size: 0, cell: start, most: 0 };
    const open = [start];
    seen[start] = 1;
    while (open.length) {
      const cell = /** @type {number} */ (open.pop());
      let sum = grid[cell]; // the cell itself counts twice, to break ties
      for (const next of around(cell, side)) {
        sum += grid[next];
        if (grid[next] && !seen[next]) {
          seen[next] = 1;
          open.push(next);
        }
      }
      group.size += grid[cell];
      if (sum > group.most) Object.assign(group, { cell, most: sum });
    }
    found.push(group);
  }
  return found;
}

/** A cell and its neighbours. */
function around(cell, side) {
  const [x, y] = [cell % side, Math.floor(cell / side)];
  const found = [];
  for (let v = Math.max(0, y - 1); v <= Math.min(side - 1, y + 1); v++) {
    for (let u = Math.max(0, x - 1); u <= Math.min(side - 1, x + 1); u++) found.push(v * side + u);
  }
  return found;
}
