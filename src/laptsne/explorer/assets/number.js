// Formatting and interpolation of numbers.

export const counted = (n) => n.toLocaleString("en-GB");

export const plural = (n, one, many = one + "s") => `${counted(n)} ${n === 1 ? one : many}`;

export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Four significant digits, for display. */
export function brief(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  return String(Number(value.toPrecision(4)));
}

/** The shortest text that is parsed to the same float32: 0.1 rather than 0.10000000149. */
export function shortest(value) {
  if (!Number.isFinite(value)) return String(value);
  for (let digits = 6; digits < 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** The value at a position between two elements, by linear interpolation; null if one of them is. */
export function between(values, at) {
  const left = Math.min(Math.floor(at), values.length - 1);
  const right = Math.min(left + 1, values.length - 1);
  if (values[left] === null || values[right] === null) return null;
  return values[left] + (values[right] - values[left]) * (at - left);
}
