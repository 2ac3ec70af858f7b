// Density of the points, where there are more of them than can be told apart: the mean colour of the points in each
// pixel, the more opaque the more they are.

import { blended } from "./painter.js";
import { UNIT } from "./places.js";

const FAINTEST = 0.3; // opacity of a pixel with one point
const FULL = 4; // times the mean count: the count of an opaque pixel

export class Density {
  constructor(canvas, places, pixels) {
    this.canvas = canvas;
    this.places = places;
    this.colours = pixels;
    this.context = canvas.getContext("2d", { alpha: false });
    this.small = document.createElement("canvas"); // one pixel of it is one of CSS, whatever the resolution
    this.image = new ImageData(1, 1);
    this.target = new Uint32Array(1);
    this.counts = new Float32Array(0);
    this.sums = [this.counts, this.counts, this.counts];
  }

  draw({ camera, paper, shade, ratio, dimmed }) {
    const width = Math.ceil(this.canvas.width / ratio);
    const height = Math.ceil(this.canvas.height / ratio);
    if (this.small.width !== width || this.small.height !== height || !this.counts.length) {
      Object.assign(this.small, { width, height });
      this.image = new ImageData(width, height);
      this.target = new Uint32Array(this.image.data.buffer);
      this.counts = new Float32Array(width * height);
      this.sums = [0, 1, 2].map(() => new Float32Array(width * height));
    }
    const under = 0xff000000 | (paper[2] << 16) | (paper[1] << 8) | paper[0];
    this.target.fill(under);
    const { scale } = camera;
    const frame = { width, height, unit: scale / UNIT, x: width / 2 - camera.x * scale, y: height / 2 + camera.y * scale };
    if (dimmed) this.layer(frame, 0, 0.25 * shade);
    this.layer(frame, 255, shade);
    /** @type {CanvasRenderingContext2D} */ (this.small.getContext("2d")).putImageData(this.image, 0, 0);
    this.context.imageSmoothingEnabled = true;
    this.context.drawImage(this.small, 0, 0, this.canvas.width, this.canvas.height);
  }

  /** Shade the rows whose highlight is `light`. */
  layer(frame, light, shade) {
    const { counts, sums: [reds, greens, blues], target } = this;
    for (const sums of [counts, reds, greens, blues]) sums.fill(0);
    this.count(frame, light);
    let [inked, total] = [0, 0];
    for (let i = 0; i < counts.length; i++) {
      if (counts[i]) {
        inked++;
        total += counts[i];
      }
    }
    const unit = 1 / Math.log1p((FULL * total) / Math.max(1, inked));
    for (let i = 0; i < counts.length; i++) {
      const n = counts[i];
      if (!n) continue;
      const opacity = shade * Math.min(1, FAINTEST + (1 - FAINTEST) * Math.log1p(n) * unit);
      const colour = (reds[i] / n) | ((greens[i] / n) << 8) | ((blues[i] / n) << 16);
      target[i] = blended(target[i], colour, (256 * opacity) | 0);
    }
  }

  count({ width, height, unit, x, y }, light) {
    const { counts, sums: [reds, greens, blues], colours } = this;
    const { here, there, share, n } = this.places;
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const colour = colours[row];
      if (colour >>> 24 !== light) continue;
      const left = Math.floor(x + unit * (here[i] + share * (there[i] - here[i])));
      const top = Math.floor(y - unit * (here[i + 1] + share * (there[i + 1] - here[i + 1])));
      if (left < 0 || top < 0 || left >= width || top >= height) continue;
      const to = top * width + left;
      counts[to] += 1;
      reds[to] += colour & 255;
      greens[to] += (colour >>> 8) & 255;
      blues[to] += (colour >>> 16) & 255;
    }
  }
}
