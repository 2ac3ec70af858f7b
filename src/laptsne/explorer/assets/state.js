// What a link restores, and what tests and the browser's console can read.

import { decodeRows, encodeRows } from "./link.js";

/** The state of an explorer as texts, for a link. */
export function linkState(explorer) {
  const { stage, selection, legend } = explorer;
  const first = explorer.data.color === null ? null : explorer.columns[explorer.data.color];
  const rounded = (value) => String(Number(value.toPrecision(5)));
  return {
    get() {
      const { away, zoom } = stage.camera;
      const moved = zoom !== 1 || away.some(Boolean);
      const { column, data } = explorer;
      return {
        view: moved ? [...away, zoom].map(rounded).join(",") : "",
        turn: stage.isTurned ? stage.angles.map(rounded).join(",") : "",
        map: explorer.stops && explorer.stops.at !== (data.path?.chosen ?? 0) ? explorer.stops.at.toFixed(2) : "",
        colour: column === first ? "" : (column?.name ?? "nothing"),
        category: [...legend.lit].join("."),
        select: encodeRows(selection.rows),
      };
    },
    /** What is not in the values is as it was at first. */
    set({ view = "0,0,1", turn = "", map = "", colour = null, category = "", select = "" }) {
      explorer.stops?.go(map === "" ? (explorer.data.path?.chosen ?? 0) : Number(map) || 0);
      if (colour !== null) explorer.chooseColourNamed(colour);
      else explorer.chooseColour(first);
      legend.lit = new Set(category ? category.split(".").map(Number) : []);
      explorer.repaint();
      explorer.setView(view.split(",").map(Number));
      const angles = turn.split(",").map(Number);
      if (stage.solid) stage.turn(angles.length === 2 && angles.every(Number.isFinite) ? angles : undefined);
      selection.set(decodeRows(select, explorer.n));
    },
  };
}

export function readout(explorer) {
  const { stage } = explorer;
  return {
    get points() { return explorer.n; },
    get view() { return { x: stage.camera.x, y: stage.camera.y, zoom: stage.camera.zoom }; },
    get slider() { return stage.places.at; },
    set slider(at) { explorer.stops.set(at); },
    get selected() { return [...explorer.selection.rows]; },
    set selected(rows) { explorer.selection.set(rows); },
    get lit() { return stage.dimmed ? [...stage.pixels.keys()].filter((row) => stage.pixels[row] >>> 24) : null; },
    get hovered() { return explorer.tooltip.row; },
    get pinned() { return explorer.card.row; },
    get names() { return explorer.naming.placed; },
    get colouring() { return explorer.column?.name ?? null; },
    set colouring(name) { explorer.chooseColourNamed(name); },
    get crowded() { return stage.crowded; },
    get settled() { return stage.resting && !stage.request; },
    get frames() { return stage.drawn; },
    get firstFrame() { return stage.firstFrame; },
    screen: (row) => stage.onScreen(row),
    colour: (row) => [stage.pixels[row] & 255, (stage.pixels[row] >> 8) & 255, (stage.pixels[row] >> 16) & 255],
    at: (left, top) => stage.at(left, top, 8),
    images: explorer.images,
  };
}
