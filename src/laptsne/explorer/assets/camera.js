// The visible part of the map. Map coordinates run from 0 to 1 along the longer side, with y upwards.

import { clamp } from "./number.js";

const MAX_ZOOM = 400;
const MARGIN = 0.92; // share of the view that the map fills

export class Camera {
  constructor() {
    this.width = this.height = 1;
    this.insets = [0, 0]; // pixels on the left and at the bottom that the tools cover
    this.centre = [0.5, 0.5];
    this.sides = [1, 1];
    this.away = [0, 0]; // from the centre of the map
    this.zoom = 1;
  }

  /**
   * Frame a map: left, bottom, right and top of its points. The view moves along with the frame.
   * @param {any} frame
   */
  fit([left, bottom, right, top]) {
    this.centre = [(left + right) / 2, (bottom + top) / 2];
    this.sides = [Math.max(right - left, 0.05), Math.max(top - bottom, 0.05)];
  }

  home() {
    this.away = [0, 0];
    this.zoom = 1;
  }

  /** What is in the middle of the part that nothing covers. */
  get middle() {
    return this.centre.map((at, axis) => at + this.away[axis]);
  }

  /** What is in the middle of the view. */
  get x() {
    return this.middle[0] - this.insets[0] / 2 / this.scale;
  }

  get y() {
    return this.middle[1] - this.insets[1] / 2 / this.scale;
  }

  /** Pixels per unit of map coordinates. */
  get scale() {
    const [left, bottom] = this.insets;
    return MARGIN * Math.min((this.width - left) / this.sides[0], (this.height - bottom) / this.sides[1]) * this.zoom;
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(left, top) {
    return [this.x + (left - this.width / 2) / this.scale, this.y - (top - this.height / 2) / this.scale];
  }

  /** Move a place to the middle of the part that nothing covers. */
  look(...place) {
    this.away = this.centre.map((at, axis) => {
      const half = this.sides[axis] / 2;
      return clamp(place[axis] - at, -half, half);
    });
  }

  pan(right, down) {
    this.look(this.middle[0] - right / this.scale, this.middle[1] + down / this.scale);
  }

  /** Zoom about a pixel, by default in the middle of the part that nothing covers. */
  zoomAt(factor, left = (this.width + this.insets[0]) / 2, top = (this.height - this.insets[1]) / 2) {
    const [x, y] = this.toMap(left, top);
    this.zoom = clamp(this.zoom * factor, 0.5, MAX_ZOOM);
    const [newX, newY] = this.toMap(left, top);
    this.look(this.middle[0] + x - newX, this.middle[1] + y - newY);
  }
}
