// The view as an image: PNG with twice the pixels of the screen, or SVG.

import { cssColour } from "./colour.js";
import { saveFile, shape } from "./dom.js";
import { fontOf, isFar } from "./naming.js";

const RATIO = 2;
const FAINT = 0.5; // opacity of the lines to names
const MAX_CIRCLES = 50000; // points in an SVG file; more are embedded as an image

/** A canvas with the points of the view. `render` draws a frame on it. */
function drawnPoints(frame, render) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(frame.camera.width * RATIO);
  canvas.height = Math.round(frame.camera.height * RATIO);
  render(canvas, { ...frame, ratio: RATIO });
  return canvas;
}

export function savePNG(frame, render, naming, text) {
  const canvas = drawnPoints(frame, render);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(RATIO, RATIO);
  const [x, y] = frame.camera.toScreen(...frame.camera.centre);
  pen.translate(x, y);
  Object.assign(pen, { strokeStyle: text, globalAlpha: FAINT });
  pen.beginPath();
  for (const { x: left, y: top, end } of naming.placed.filter(isFar)) {
    pen.moveTo(left, top);
    pen.lineTo(end[0], end[1]);
  }
  pen.stroke();
  pen.globalAlpha = 1;
  Object.assign(pen, { textAlign: "center", lineJoin: "round", lineWidth: 3, fillStyle: text, strokeStyle: cssColour(frame.paper) });
  for (const { left, top, width, size, lines } of naming.placed) {
    pen.font = fontOf(size);
    lines.forEach((line, i) => {
      const place = /** @type {[string, number, number]} */ ([line, left + width / 2, top + 1.15 * size * (i + 0.5) + 0.35 * size]);
      pen.strokeText(...place);
      pen.fillText(...place);
    });
  }
  canvas.toBlob((blob) => saveFile(blob, "map.png"));
}

export function saveSVG(frame, render, naming, text, places, pixels) {
  const { camera, paper, size, ink } = frame;
  const { width, height } = camera;
  const svg = shape("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height });
  svg.append(shape("rect", { width, height, fill: cssColour(paper) }));
  const rows = visible(places, camera);
  if (rows.length > MAX_CIRCLES) {
    svg.append(shape("image", { width, height, href: drawnPoints(frame, render).toDataURL() }));
  } else {
    const points = shape("g", { "fill-opacity": ink });
    for (const row of rows.sort((a, b) => (pixels[a] >>> 24) - (pixels[b] >>> 24))) {
      const [cx, cy] = camera.toScreen(...places.of(row)).map((value) => value.toFixed(2));
      const colour = [pixels[row] & 255, (pixels[row] >> 8) & 255, (pixels[row] >> 16) & 255];
      const faded = pixels[row] >>> 24 ? {} : { "fill-opacity": 0.18 * ink };
      points.append(shape("circle", { cx, cy, r: (size / 2).toFixed(2), fill: cssColour(colour), ...faded }));
    }
    svg.append(points);
  }
  const names = naming.group.cloneNode(true);
  const style = { fill: text, stroke: cssColour(paper), "stroke-width": 3, "paint-order": "stroke", "text-anchor": "middle",
    "font-family": "system-ui, sans-serif", "font-weight": 600, "stroke-linejoin": "round" };
  for (const name in style) names.setAttribute(name, style[name]);
  for (const line of names.querySelectorAll("line")) {
    for (const [name, value] of [["stroke", text], ["stroke-opacity", FAINT], ["stroke-width", 1]]) line.setAttribute(name, value);
  }
  svg.append(names);
  saveFile(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }), "map.svg");
}

function visible(places, camera) {
  const [left, top] = camera.toMap(-20, -20);
  const [right, bottom] = camera.toMap(camera.width + 20, camera.height + 20);
  const rows = [];
  for (let row = 0; row < places.n; row++) {
    const [x, y] = places.of(row);
    if (x >= left && x <= right && y >= bottom && y <= top) rows.push(row);
  }
  return rows;
}
