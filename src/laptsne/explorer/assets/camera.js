// The visible part of the map. Map coordinates run from 0 to 1 along the longer side, with y upwards.

const MAX_ZOOM = 400;

class Camera {
  constructor(extent) {
    this.extent = extent;
    this.width = this.height = 1;
    this.home();
  }

  home() {
    this.x = this.extent[0] / 2;
    this.y = this.extent[1] / 2;
    this.zoom = 1;
  }

  /** Pixels per unit of map coordinates. */
  get scale() {
    const [across, up] = this.extent.map((side) => Math.max(side, 0.05));
    return 0.92 * Math.min(this.width / across, this.height / up) * this.zoom;
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(left, top) {
    return [this.x + (left - this.width / 2) / this.scale, this.y - (top - this.height / 2) / this.scale];
  }

  pan(right, down) {
    this.x -= right / this.scale;
    this.y += down / this.scale;
    this.keepInSight();
  }

  /** Zoom about a pixel, the centre by default. */
  zoomAt(factor, left = this.width / 2, top = this.height / 2) {
    const [x, y] = this.toMap(left, top);
    this.zoom = Math.min(MAX_ZOOM, Math.max(0.5, this.zoom * factor));
    const [newX, newY] = this.toMap(left, top);
    this.x += x - newX;
    this.y += y - newY;
    this.keepInSight();
  }

  keepInSight() {
    this.x = Math.min(this.extent[0], Math.max(0, this.x));
    this.y = Math.min(this.extent[1], Math.max(0, this.y));
  }
}
