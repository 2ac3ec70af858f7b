// Software renderer, for browsers without WebGL, and for moving points where WebGL is emulated on the CPU, which takes
// about ten times as long per point.

import { UNIT } from "./places.js";

export class Painter {
  constructor(canvas, places, pixels) {
    this.canvas = canvas;
    this.places = places;
    this.colours = pixels; // highlight, blue, green, red
    this.context = canvas.getContext("2d", { alpha: false });
    this.image = new ImageData(1, 1);
    this.target = new Uint32Array(1);
  }

  draw({ camera, paper, size, ink, ratio, dimmed }) {
    const { width, height } = this.canvas;
    if (this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.target = new Uint32Array(this.image.data.buffer);
    }
    const under = 0xff000000 | (paper[2] << 16) | (paper[1] << 8) | paper[0];
    this.target.fill(under);
    const scale = camera.scale * ratio;
    const frame = { scale, x: width / 2 - camera.x * scale, y: height / 2 + camera.y * scale };
    if (dimmed) this.stamp(frame, this.disc(Math.max(1, size * ratio * 0.8), ink), 0, under);
    this.stamp(frame, this.disc(size * ratio, ink), 255, under);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Opacity of the pixels of a disc, from 0 to 256. */
  disc(width, ink) {
    const side = Math.ceil(width + 1) | 1; // odd, so that it has a centre
    const alphas = new Int32Array(side * side);
    for (let i = 0; i < side * side; i++) {
      const away = Math.hypot((i % side) - (side >> 1), Math.floor(i / side) - (side >> 1));
      alphas[i] = 256 * ink * Math.min(1, Math.max(0, 0.5 * width + 0.5 - away));
    }
    return { side, alphas };
  }

  /** Draw the discs of all rows whose highlight is `light`, 255 or 0; those at 0 are faded. */
  stamp({ scale, x, y }, { side, alphas }, light, under) {
    const { target, colours } = this;
    const { here, there, share, n } = this.places;
    const { width, height } = this.canvas;
    const [reach, unit] = [side >> 1, scale / UNIT];
    for (let row = 0, i = 0; row < n; row++, i += 2) {
      const colour = colours[row];
      if (colour >>> 24 !== light) continue;
      const left = Math.floor(x + unit * (here[i] + share * (there[i] - here[i]))) - reach;
      const top = Math.floor(y - unit * (here[i + 1] + share * (there[i + 1] - here[i + 1]))) - reach;
      if (left >= width || top >= height || left + side <= 0 || top + side <= 0) continue;
      const first = Math.max(0, -left);
      const last = Math.min(side, width - left);
      const begin = Math.max(0, -top);
      const end = Math.min(side, height - top);
      const tint = light ? colour : blended(under, colour, 46);
      for (let v = begin; v < end; v++) {
        for (let u = first; u < last; u++) {
          const alpha = alphas[v * side + u];
          const to = (top + v) * width + left + u;
          if (alpha) target[to] = blended(target[to], tint, alpha);
        }
      }
    }
  }
}

/** Blend one pixel over another with an opacity from 0 to 256: red and blue at once, then green. */
export function blended(under, over, alpha) {
  const rest = 256 - alpha;
  const redBlue = (Math.imul(under & 0xff00ff, rest) + Math.imul(over & 0xff00ff, alpha)) >>> 8;
  const green = (Math.imul(under & 0xff00, rest) + Math.imul(over & 0xff00, alpha)) >>> 8;
  return 0xff000000 | (redBlue & 0xff00ff) | (green & 0xff00);
}
