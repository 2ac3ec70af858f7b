// Points inside a polygon, by the even-odd rule.

function insideOutline(outline, xs, ys) {
  const across = outline.map(([x]) => x);
  const up = outline.map(([, y]) => y);
  const [left, right, low, high] = [Math.min(...across), Math.max(...across), Math.min(...up), Math.max(...up)];
  const rows = [];
  for (let row = 0; row < xs.length; row++) {
    const [x, y] = [xs[row], ys[row]];
    if (x >= left && x <= right && y >= low && y <= high && crossings(across, up, x, y) % 2) rows.push(row);
  }
  return rows;
}

/** Number of times a ray from the point to the right crosses the outline. */
function crossings(across, up, x, y) {
  let count = 0;
  for (let i = 0, j = up.length - 1; i < up.length; j = i++) {
    if (up[i] > y !== up[j] > y && x < across[i] + ((across[j] - across[i]) * (y - up[i])) / (up[j] - up[i])) count++;
  }
  return count;
}
