// Positions of the points in the current map, which lies between two of the maps of the data. Queries scan all points,
// a few milliseconds per million: an index would have to be built again after each move of the slider.

export const UNIT = 65535; // steps per unit of map coordinates

export class Places {
  /** Positions in two dimensions, or a solid, a map in three, which is seen from some side. */
  constructor(positions, n, states, solid = false) {
    this.solid = solid ? positions : null;
    this.positions = solid ? new Uint16Array(2 * n * states) : positions;
    this.n = n;
    this.states = states;
    this.turned = "0,0"; // angles about the vertical and the horizontal axis
    this.at = 0;
    this.left = 0;
    this.right = Math.min(1, states - 1);
    this.share = 0; // of the map on the right
    this.here = this.state(this.left);
    this.there = this.state(this.right);
    this.reach = 1; // largest distance from the centre of a solid
    if (!solid) return;
    for (let i = 0; i < positions.length; i += 3) {
      this.reach = Math.max(this.reach, Math.hypot(...[0, 1, 2].map((axis) => positions[i + axis] - UNIT / 2)));
    }
  }

  /** See a solid from another side: every map is scaled to fit into the view from all sides. */
  turn(yaw, pitch) {
    const { solid, positions } = this;
    this.turned = `${yaw},${pitch}`;
    const middle = UNIT / 2;
    const scale = middle / this.reach;
    const [a, b, c, d] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    for (let i = 0, j = 0; i < positions.length; i += 2, j += 3) {
      const [x, y, z] = [solid[j] - middle, solid[j + 1] - middle, solid[j + 2] - middle];
      positions[i] = middle + scale * (a * x + b * z);
      positions[i + 1] = middle + scale * (c * y + d * (b * x - a * z));
    }
  }

  /** Move to a position of the slider. */
  set(at) {
    const left = Math.min(Math.floor(at), Math.max(0, this.states - 2));
    this.at = at;
    this.left = left;
    this.right = Math.min(left + 1, this.states - 1);
    this.share = at - left;
    this.here = this.state(this.left);
    this.there = this.state(this.right);
  }

  /** Positions of one map, x and y in turn. */
  state(index) {
    return this.positions.subarray(2 * this.n * index, 2 * this.n * (index + 1));
  }

  /** Position of a row in map coordinates. */
  of(row) {
    const { here, there, share } = this;
    return [2 * row, 2 * row + 1].map((i) => (here[i] + (there[i] - here[i]) * share) / UNIT);
  }

  /**
   * The nearest row within `reach` of a position, or -1. With `pixels`, only rows with a highest byte are considered.
   * @param {Uint32Array | null} pixels
   */
  nearest(x, y, reach, pixels = null) {
    const { here, there, share, n } = this;
    const [toX, toY, far] = [x * UNIT, y * UNIT, reach * UNIT];
    let best = -1;
    let least = far * far;
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const right = here[i] + share * (there[i] - here[i]) - toX;
      if (right > far || right < -far) continue;
      const up = here[i + 1] + share * (there[i + 1] - here[i + 1]) - toY;
      const distance = right * right + up * up;
      if (distance <= least && (pixels === null || pixels[row] >>> 24)) {
        best = row;
        least = distance;
      }
    }
    return best;
  }

  /** Number of rows in a rectangle. */
  countIn([left, bottom, right, top]) {
    const { here, there, share, n } = this;
    const [low, high, under, over] = [left * UNIT, right * UNIT, bottom * UNIT, top * UNIT];
    let count = 0;
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const x = here[i] + share * (there[i] - here[i]);
      const y = here[i + 1] + share * (there[i + 1] - here[i + 1]);
      if (x >= low && x <= high && y >= under && y <= over) count++;
    }
    return count;
  }

  /** Rows inside a polygon, by the even-odd rule. */
  inside(outline) {
    const { here, there, share, n } = this;
    const across = outline.map(([x]) => x * UNIT);
    const up = outline.map(([, y]) => y * UNIT);
    const [left, right, low, high] = [Math.min(...across), Math.max(...across), Math.min(...up), Math.max(...up)];
    const rows = [];
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const x = here[i] + share * (there[i] - here[i]);
      if (x < left || x > right) continue;
      const y = here[i + 1] + share * (there[i + 1] - here[i + 1]);
      if (y >= low && y <= high && crossings(across, up, x, y) % 2) rows.push(row);
    }
    return Uint32Array.from(rows);
  }
}

/** Number of times a ray from the point to the right crosses the outline. */
function crossings(across, up, x, y) {
  let count = 0;
  for (let i = 0, j = up.length - 1; i < up.length; j = i++) {
    if (up[i] > y !== up[j] > y && x < across[i] + ((across[j] - across[i]) * (y - up[i])) / (up[j] - up[i])) count++;
  }
  return count;
}
