// Colours as [red, green, blue] from 0 to 255.

// Anchors of viridis, whose lightness increases evenly from violet to yellow.
const SCALE = [
  "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725",
].map(parseColour);

export function parseColour(text) {
  if (text[0] === "#") return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  return (text.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
}

export const mixed = (a, b, t) => a.map((c, i) => Math.round(c + (b[i] - c) * t));

export const cssColour = (colour) => `rgb(${colour.join(", ")})`;

/** A colour as the lower three bytes of a pixel. */
export const packed = ([red, green, blue]) => red | (green << 8) | (blue << 16);

/** Colour of a value from 0 to 1, without the end of the scale that is close to the background. */
export function scaleColour(share, dark) {
  const at = (dark ? 0.14 + 0.86 * share : 0.94 * share) * (SCALE.length - 1);
  const left = Math.min(Math.floor(at), SCALE.length - 2);
  return mixed(SCALE[left], SCALE[left + 1], at - left);
}

/** Colour of a category, lightened in the dark theme. */
export function categoryColour(palette, code, dark) {
  const colour = parseColour(palette[code % palette.length]);
  return dark ? lifted(colour) : colour;
}

/** Lighten a colour in OKLab, changing lightness alone, so that dark colours remain distinguishable. */
function lifted(colour) {
  const linear = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const sum = (rows, values) => rows.map((row) => row[0] * values[0] + row[1] * values[1] + row[2] * values[2]);
  const cones = sum(TO_CONES, linear).map(Math.cbrt);
  const [lightness] = sum([[0.2105, 0.7936, -0.0041]], cones);
  const more = 0.32 * Math.max(0, 0.9 - lightness);
  return sum(FROM_CONES, cones.map((cone) => (cone + more) ** 3)).map((c) => {
    const shown = c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, shown)));
  });
}

const TO_CONES = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]];
const FROM_CONES = [[4.07674, -3.30771, 0.23097], [-1.26844, 2.60976, -0.34132], [-0.0042, -0.70342, 1.70761]];
