// Names of categories on the map: each at its densest place, larger categories first, none over another.

import { shape } from "./dom.js";
import { clamp } from "./number.js";
import { UNIT } from "./places.js";

const CELLS = 48; // per side of the grid in which the densest place is sought
const FINE = 96; // per side of the grid that tells where points are
const MAX_NAMED = 150; // categories; of more, none is named
const MAX_GROUPS = 24; // with the whole map in view; of more nested groups, coarser ones are named
const LINE = 16; // characters, about
const MAX_LINES = 3;
const RINGS = 9; // of places around the densest one
const DIRECTIONS = 12;
const COVERED = 0.12; // pixels that a name moves to uncover one square pixel of points
const MIXED = 65535; // owner of a cell with points of several categories
const LEADER = 18; // pixels between a category and its name, beyond which a line connects them
const FONT = "600 {}px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export const fontOf = (size) => FONT.replace("{}", String(size));

/** The densest place of each category in one map, in map coordinates: x and y in turn, NaN if it has no points. */
function densestPlaces(positions, column) {
  const [{ values }, n, k] = [column, column.values.length, column.names.length];
  const cellOf = (i) => Math.min(CELLS - 1, (positions[i] * CELLS / UNIT) | 0);
  const counts = new Uint32Array(k * CELLS * CELLS);
  for (let row = 0; row < n; row++) {
    if (values[row] < k) counts[(values[row] * CELLS + cellOf(2 * row + 1)) * CELLS + cellOf(2 * row)]++;
  }
  const best = Array.from({ length: k }, (_, code) => densestCell(counts, code));
  const sums = new Float64Array(3 * k);
  for (let row = 0; row < n; row++) {
    const code = values[row];
    if (code === k) continue;
    if (Math.abs(cellOf(2 * row) - best[code][0]) > 1 || Math.abs(cellOf(2 * row + 1) - best[code][1]) > 1) continue;
    sums[3 * code] += positions[2 * row];
    sums[3 * code + 1] += positions[2 * row + 1];
    sums[3 * code + 2]++;
  }
  return Float64Array.from({ length: 2 * k }, (_, i) => sums[3 * (i >> 1) + (i & 1)] / sums[3 * (i >> 1) + 2] / UNIT);
}

/** The cell whose three by three neighbourhood has most points of a category. */
function densestCell(counts, code) {
  let [best, most] = [[0, 0], -1];
  for (let y = 0; y < CELLS; y++) {
    for (let x = 0; x < CELLS; x++) {
      let sum = counts[(code * CELLS + y) * CELLS + x]; // the cell itself counts twice, to break ties
      for (let v = Math.max(0, y - 1); v <= Math.min(CELLS - 1, y + 1); v++) {
        for (let u = Math.max(0, x - 1); u <= Math.min(CELLS - 1, x + 1); u++) sum += counts[(code * CELLS + v) * CELLS + u];
      }
      if (sum > most) [best, most] = [[x, y], sum];
    }
  }
  return best;
}

/** A name in lines of similar length. */
export function lines(name) {
  const words = name.replace(/\s+/g, " ").trim().split(" ");
  const made = [""];
  for (const word of words) {
    const last = made.length - 1;
    const joined = made[last] ? `${made[last]} ${word}` : word;
    if (joined.length <= LINE || !made[last]) made[last] = joined;
    else made.push(word);
  }
  const cut = made.slice(0, MAX_LINES).map((line) => (line.length > LINE + 8 ? `${line.slice(0, LINE + 7)}…` : line));
  if (made.length > MAX_LINES) cut[MAX_LINES - 1] += " …";
  return cut;
}

export class Naming {
  constructor(group, places) {
    this.group = group;
    this.places = places;
    this.pen = /** @type {any} */ (document.createElement("canvas").getContext("2d"));
    this.known = new Map(); // densest places by column and map
    this.key = "";
    /** @type {{x: number, y: number, end: number[], left: number, top: number, width: number, height: number, size: number, lines: string[]}[]} */
    this.placed = []; // in pixels from the centre of the map
  }

  static canName(column) {
    const { scaled, distinct, boolean, names, layers } = column;
    return !scaled && !distinct && !boolean && names.length > 1 && (names.length <= MAX_NAMED || layers.length > 0);
  }

  anchors(column) {
    const of = (state) => {
      const key = `${column.name} ${state}`;
      if (!this.known.has(key)) this.known.set(key, densestPlaces(this.places.state(state), column));
      return this.known.get(key);
    };
    const { left, right, share } = this.places;
    const [here, there] = [of(left), share ? of(right) : of(left)];
    return here.map((value, i) => value + share * (there[i] - value));
  }

  /** Whose points the cells of the map have: 0 for none, or the code of their category plus one. */
  owners({ values }) {
    const { here, there, share, n } = this.places;
    const cells = new Uint16Array(FINE * FINE);
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const x = Math.min(FINE - 1, ((here[i] + share * (there[i] - here[i])) * FINE / UNIT) | 0);
      const y = Math.min(FINE - 1, ((here[i + 1] + share * (there[i + 1] - here[i + 1])) * FINE / UNIT) | 0);
      const at = y * FINE + x;
      cells[at] = cells[at] === 0 || cells[at] === values[row] + 1 ? values[row] + 1 : MIXED;
    }
    return cells;
  }

  /**
   * Draw the names of a column, or none: those of coarser groups, if there are any, where the view shows too many.
   * Moving the view moves them; they are placed again only if it is zoomed.
   */
  draw(named, lit, camera) {
    const codes = [...lit].join();
    const column = lit.size ? named : named?.layer(Math.min(MAX_GROUPS * camera.zoom ** 2, MAX_NAMED));
    const key = column ? [column.name, codes, this.places.at, camera.scale.toFixed(3), camera.zoom].join("|") : "";
    if (key !== this.key) {
      this.key = key;
      this.placed = column ? this.place(column, lit, camera) : [];
      this.group.replaceChildren(...this.placed.filter(isFar).map(leader), ...this.placed.map(drawn)); // names over lines
    }
    const [x, y] = camera.toScreen(...camera.centre);
    this.group.setAttribute("transform", `translate(${x} ${y})`);
  }

  /** Boxes of the names that have room. */
  place(column, lit, camera) {
    const anchors = this.anchors(column);
    const owners = this.owners(column);
    const order = column.names.map((_, code) => code).filter((code) => column.counts[code] && (!lit.size || lit.has(code)));
    order.sort((a, b) => column.counts[b] - column.counts[a] || a - b);
    const most = column.counts[order[0]] || 1;
    const placed = [];
    for (const code of order) {
      const size = fontSize(column.counts[code] / most, order.length, camera);
      const text = lines(column.caption(code));
      this.pen.font = fontOf(size);
      const width = Math.max(...text.map((line) => this.pen.measureText(line).width));
      const height = 1.15 * size * text.length;
      const x = (anchors[2 * code] - camera.centre[0]) * camera.scale;
      const y = (camera.centre[1] - anchors[2 * code + 1]) * camera.scale;
      const spot = room({ x, y, width, height }, placed, camera, owners);
      if (!spot) continue;
      const end = [clamp(x, spot.left, spot.left + width), clamp(y, spot.top, spot.top + height)];
      placed.push({ ...spot, width, height, ...edge([x, y], end, code + 1, camera, owners), end, size, lines: text });
    }
    return placed;
  }
}

/** Font size in pixels: smaller for smaller categories and for many, in a small view, and when zoomed out. */
function fontSize(share, count, camera) {
  const room = clamp((Math.min(camera.width, camera.height) - 500) / 150, -2, 2) - clamp(Math.log2(count / 10), 0, 2);
  const base = 12.5 + 2 * Math.log2(Math.max(0.5, camera.zoom)) + room;
  return Math.round(2 * clamp(base * (0.78 + 0.22 * Math.sqrt(share)), 9, 19)) / 2;
}

/** The place for a box on or around a point that is free, near, and covers few points; null if none is free. */
function room({ x, y, width, height }, placed, camera, owners) {
  const free = (left, top) => placed.every((other) => left + width + 4 < other.left || other.left + other.width + 4 < left
    || top + height + 2 < other.top || other.top + other.height + 2 < top);
  // With the whole map in view, names stay in it.
  const inside = [camera.width / 2 - 4, (camera.height - camera.inset) / 2 - 4];
  const [right, bottom] = camera.zoom <= 1 ? inside : [Infinity, Infinity];
  /** @type {{left: number, top: number} | null} */
  let best = null;
  let least = Infinity;
  for (let ring = 0; ring <= RINGS; ring++) {
    for (let i = 0; i < (ring ? DIRECTIONS : 1); i++) {
      const angle = (2 * Math.PI * i) / DIRECTIONS;
      const away = [ring * Math.cos(angle) * (0.2 * width + 8), ring * Math.sin(angle) * (0.4 * height + 6)];
      const left = clamp(x + away[0] - width / 2, -right, right - width);
      const top = clamp(y + away[1] - height / 2, -bottom, bottom - height);
      const cost = Math.hypot(...away) + COVERED * covered({ left, top, width, height }, camera, owners);
      if (cost < least && free(left, top)) [best, least] = [{ left, top }, cost];
    }
  }
  return best;
}

/** Area of a box with points under it, in square pixels. */
function covered({ left, top, width, height }, camera, owners) {
  const cell = camera.scale / FINE; // pixels
  const [x, y] = [camera.centre[0] * FINE + left / cell, camera.centre[1] * FINE - (top + height) / cell];
  let area = 0;
  for (let v = Math.max(0, Math.floor(y)); v < Math.min(FINE, y + height / cell); v++) {
    for (let u = Math.max(0, Math.floor(x)); u < Math.min(FINE, x + width / cell); u++) {
      if (!owners[v * FINE + u]) continue;
      const across = Math.min(u + 1, x + width / cell) - Math.max(u, x);
      area += across * (Math.min(v + 1, y + height / cell) - Math.max(v, y)) * cell * cell;
    }
  }
  return area;
}

/** The last cell on the way from a place to its name that has points of that category alone. */
function edge([x, y], end, owner, camera, owners) {
  const cell = camera.scale / FINE; // pixels
  const steps = Math.ceil((2 * Math.hypot(end[0] - x, end[1] - y)) / cell);
  let last = { x, y };
  for (let step = 0; step < steps; step++) {
    const at = { x: x + (step / steps) * (end[0] - x), y: y + (step / steps) * (end[1] - y) };
    const [u, v] = [camera.centre[0] * FINE + at.x / cell, camera.centre[1] * FINE - at.y / cell].map(Math.floor);
    const found = owners[clamp(v, 0, FINE - 1) * FINE + clamp(u, 0, FINE - 1)];
    if (found === owner) last = at;
    else if (found) break;
  }
  return last;
}

/** Whether a name stands so far from its category that a line connects them. */
export const isFar = ({ x, y, end }) => Math.hypot(end[0] - x, end[1] - y) > LEADER;

const leader = ({ x, y, end }) => shape("line", { x1: x, y1: y, x2: end[0], y2: end[1] });

/** The name. */
function drawn({ left, top, width, height, size, lines: text }) {
  const [middle, centre] = [left + width / 2, top + height / 2];
  const label = shape("text", { "font-size": size });
  text.forEach((line, i) => {
    label.append(shape("tspan", { x: middle, y: centre + 1.15 * size * (i - (text.length - 1) / 2) + 0.35 * size }, line));
  });
  return label;
}
