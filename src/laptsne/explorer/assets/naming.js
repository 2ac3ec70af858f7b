// Names of categories on the map, once per island: at its densest place, larger islands first, none over another.

import { shape } from "./dom.js";
import { islands } from "./islands.js";
import { clamp } from "./number.js";
import { UNIT } from "./places.js";

const FINE = 96; // per side of the grid that tells where points are
const MAX_NAMED = 150; // categories; of more, none is named
const MAX_GROUPS = 24; // with the whole map in view; of more nested groups, coarser ones are named
const LINE = 16; // characters, about
const MAX_LINES = 3;
const RINGS = 9; // of places around the densest one
const DIRECTIONS = 12;
const COVERED = 0.12; // pixels that a name moves to uncover one square pixel of points
const HIDDEN = 1; // the same of an island that a name could hide
const MIXED = 65535; // owner of a cell with points of several categories
const LEADER = 18; // pixels between an island and its name, beyond which a line connects them
const FONT = "600 {}px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export const fontOf = (size) => FONT.replace("{}", String(size));

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
    this.known = new Map(); // islands by column and map
    this.key = "";
    /** @type {any[]} */
    this.placed = []; // in pixels from the centre of the map
  }

  static canName(column) {
    const { scaled, distinct, boolean, names, layers } = column;
    return !scaled && !distinct && !boolean && names.length > 1 && (names.length <= MAX_NAMED || layers.length > 0);
  }

  /** The islands of the categories, in the nearest map of the slider, with their places now. */
  anchors(column) {
    const { places } = this;
    const [state, turned] = [Math.round(places.at), places.turned];
    const key = `${column.name} ${state}`;
    if (this.known.get(key)?.turned !== turned) {
      this.known.set(key, { turned, found: islands(places.state(state), column) });
    }
    return this.known.get(key).found.map((island) => {
      const of = island.rows.map((row) => places.of(row));
      const at = [0, 1].map((axis) => of.reduce((sum, place) => sum + place[axis], 0) / of.length);
      const reach = at.map((middle, axis) => Math.max(...of.map((place) => Math.abs(place[axis] - middle))));
      return { ...island, at, reach };
    });
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
    const key = column ? [column.name, codes, this.places.at, this.places.turned, camera.scale.toFixed(3), camera.zoom].join("|") : "";
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
    const owners = this.owners(column);
    const found = this.anchors(column).filter(({ code }) => !lit.size || lit.has(code));
    const most = found[0]?.size || 1;
    const count = new Set(found.map(({ code }) => code)).size;
    /** @type {any[]} */
    const placed = [];
    for (const { code, size: points, at, reach } of found) {
      const size = fontSize(points / most, count, camera);
      const text = lines(column.caption(code));
      this.pen.font = fontOf(size);
      const width = Math.max(...text.map((line) => this.pen.measureText(line).width));
      const height = 1.15 * size * text.length;
      const x = (at[0] - camera.centre[0]) * camera.scale;
      const y = (camera.centre[1] - at[1]) * camera.scale;
      const weight = 2 * reach[0] * camera.scale < width && 1.4 * reach[1] * camera.scale < height ? HIDDEN : COVERED;
      const spot = room({ x, y, width, height, weight, owner: code + 1 }, placed, camera, owners);
      if (spot) placed.push({ ...spot, width, height, size, code, lines: text });
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
function room({ x, y, width, height, weight, owner }, placed, camera, owners) {
  const free = (left, top) => placed.every((other) => left + width + 4 < other.left || other.left + other.width + 4 < left
    || top + height + 2 < other.top || other.top + other.height + 2 < top);
  // With the whole map in view, names stay in it.
  const inside = [(camera.width - camera.insets[0]) / 2 - 4, (camera.height - camera.insets[1]) / 2 - 4];
  const [right, bottom] = camera.zoom <= 1 ? inside : [Infinity, Infinity];
  /** @type {any} */
  let best = null;
  let least = Infinity;
  for (let ring = 0; ring <= RINGS; ring++) {
    for (let i = 0; i < (ring ? DIRECTIONS : 1); i++) {
      const angle = (2 * Math.PI * i) / DIRECTIONS;
      const away = [ring * Math.cos(angle) * (0.2 * width + 8), ring * Math.sin(angle) * (0.4 * height + 6)];
      const left = clamp(x + away[0] - width / 2, -right, right - width);
      const top = clamp(y + away[1] - height / 2, -bottom, bottom - height);
      const box = { left, top, width, height };
      const cost = Math.hypot(...away) + weight * covered(box, camera, owners);
      if (cost >= least || !free(left, top)) continue;
      const end = [clamp(x, left, left + width), clamp(y, top, top + height)];
      const line = leaderTo([x, y], end, owner, camera, owners);
      if (line && placed.every((other) => !crosses(line, other) && !(other.end && crosses(other, box)))) {
        [best, least] = [{ left, top, ...line }, cost];
      }
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

/** The line from the edge of an island to its name, or null if it would run through points. */
function leaderTo([x, y], end, owner, camera, owners) {
  const cell = camera.scale / FINE; // pixels
  const steps = Math.ceil((4 * Math.hypot(end[0] - x, end[1] - y)) / cell);
  const line = { x, y, end };
  let out = false;
  for (let step = 0; step < steps; step++) {
    const at = { x: x + (step / steps) * (end[0] - x), y: y + (step / steps) * (end[1] - y) };
    const [u, v] = [camera.centre[0] * FINE + at.x / cell, camera.centre[1] * FINE - at.y / cell].map(Math.floor);
    const found = u >= 0 && v >= 0 && u < FINE && v < FINE ? owners[v * FINE + u] : 0;
    if (!out && (found === owner || found === MIXED)) Object.assign(line, at);
    else if (found && isFar({ ...line, end })) return null;
    else out = true;
  }
  return line;
}

/** Whether a line that is drawn runs through a box. */
function crosses({ x, y, end }, { left, top, width, height }) {
  if (!isFar({ x, y, end })) return false;
  const steps = Math.ceil(Math.hypot(end[0] - x, end[1] - y) / 4);
  for (let step = 0; step <= steps; step++) {
    const [at, down] = [x + (step / steps) * (end[0] - x) - left, y + (step / steps) * (end[1] - y) - top];
    if (at > 0 && down > 0 && at < width && down < height) return true;
  }
  return false;
}

/** Whether a name stands so far from its island that a line connects them. */
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
