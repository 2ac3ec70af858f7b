// Software renderer, for browsers without WebGL, and for moving points where WebGL is emulated on the CPU, which takes
// about ten times as long per point.

class Painter {
  constructor(canvas, positions, n, colours) {
    Object.assign(this, { canvas, positions, n });
    this.colours = new Uint32Array(colours.buffer); // alpha, blue, green, red
    this.context = canvas.getContext("2d", { alpha: false });
  }

  draw({ camera, at, states, paper, size, ink, density, dimmed }) {
    const { width, height } = this.canvas;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const paperPixel = 0xff000000 | (paper[2] << 16) | (paper[1] << 8) | paper[0];
    this.pixels.fill(paperPixel);
    const left = Math.min(Math.floor(at), Math.max(0, states - 2));
    const frame = {
      here: 2 * this.n * left,
      there: 2 * this.n * Math.min(left + 1, states - 1),
      share: at - left,
      scale: camera.scale * density,
      x: width / 2 - camera.x * camera.scale * density,
      y: height / 2 + camera.y * camera.scale * density,
    };
    if (dimmed) this.stamp(frame, this.disc(Math.max(1, size * density * 0.8), ink), 0, paperPixel);
    this.stamp(frame, this.disc(size * density, ink), 255, paperPixel);
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
  stamp({ here, there, share, scale, x, y }, { side, alphas }, light, paperPixel) {
    const { pixels, positions, colours, n } = this;
    const { width, height } = this.canvas;
    const [reach, unit] = [side >> 1, scale / 65535];
    for (let row = 0; row < n; row++) {
      const colour = colours[row];
      if (colour >>> 24 !== light) continue;
      const [i, j] = [here + 2 * row, there + 2 * row];
      const left = Math.floor(x + unit * (positions[i] + share * (positions[j] - positions[i]))) - reach;
      const top = Math.floor(y - unit * (positions[i + 1] + share * (positions[j + 1] - positions[i + 1]))) - reach;
      const [first, last] = [Math.max(0, -left), Math.min(side, width - left)];
      const [begin, end] = [Math.max(0, -top), Math.min(side, height - top)];
      const tint = light ? colour : blended(paperPixel, colour, 46);
      for (let v = begin; v < end; v++) {
        for (let u = first; u < last; u++) {
          const alpha = alphas[v * side + u];
          const to = (top + v) * width + left + u;
          if (alpha) pixels[to] = blended(pixels[to], tint, alpha);
        }
      }
    }
  }
}

/** Blend one pixel over another with an opacity from 0 to 256: red and blue at once, then green. */
function blended(under, over, alpha) {
  const rest = 256 - alpha;
  const redBlue = (Math.imul(under & 0xff00ff, rest) + Math.imul(over & 0xff00ff, alpha)) >>> 8;
  const green = (Math.imul(under & 0xff00, rest) + Math.imul(over & 0xff00, alpha)) >>> 8;
  return 0xff000000 | (redBlue & 0xff00ff) | (green & 0xff00);
}
