// The map on the screen: which renderer draws it, and when.

import { Camera } from "./camera.js";
import { Density } from "./density.js";
import { between, clamp } from "./number.js";
import { Painter } from "./painter.js";
import { Places } from "./places.js";
import { Points } from "./points.js";

const OBLIQUE = [0.5, 0.35]; // angles in radians
const SETTLED = 150; // milliseconds without motion after which the map is drawn at full quality
const DENSE = 200000; // points in the view beyond which their density is drawn

export class Stage {
  /** `onDraw` is called after each frame. */
  constructor(box, canvas, painting, data, onDraw) {
    this.box = box;
    this.canvas = canvas;
    this.painting = painting;
    this.onDraw = onDraw;
    this.frames = data.frames;
    this.n = data.points;
    this.solid = data.dimensions === 3; // a map in three dimensions, which can be turned
    if (this.solid) this.frames = data.frames.map(() => [0, 0, 1, 1]);
    this.places = new Places(data.positions, data.points, data.states, this.solid);
    this.angles = [...OBLIQUE];
    this.camera = new Camera();
    this.camera.fit(this.frames[0]);
    this.pixels = new Uint32Array(this.n); // highlight, blue, green and red of each row
    if (this.solid) this.places.turn(...this.angles);
    this.points = Points.on(canvas, this.places, this.pixels);
    this.painter = new Painter(painting, this.places, this.pixels);
    this.density = new Density(painting, this.places, this.pixels);
    this.paper = [255, 255, 255];
    this.dimmed = false;
    this.enlarged = 1; // chosen factor on the size of the points
    /** @type {number | null} */
    this.opacity = null; // chosen opacity
    this.ratio = 1;
    this.moved = -Infinity;
    this.drawn = 0;
    this.request = 0;
    this.settling = 0;
    /** @type {number | null} */
    this.firstFrame = null;
    this.resting = false; // whether the last frame was one of full quality
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => { this.points?.prepare(); this.redraw(); });
  }

  /** Diameter of a point in pixels: larger for few points and when zoomed in. */
  get size() {
    const room = Math.sqrt((this.camera.width * this.camera.height) / this.n);
    const size = Math.min(7, 1.1 + 0.25 * room) * Math.max(1, this.camera.zoom) ** 0.4;
    return clamp(this.enlarged * Math.min(18, size), 0.5, 60);
  }

  get ink() {
    return this.opacity ?? (this.n > 20000 ? 0.75 : 0.88);
  }

  get frame() {
    const { camera, paper, size, ink, ratio, dimmed } = this;
    return { camera, paper, size, ink, ratio, dimmed, shade: this.opacity ?? 1 };
  }

  resize() {
    this.camera.width = Math.max(1, this.box.clientWidth);
    this.camera.height = Math.max(1, this.box.clientHeight);
    // A higher pixel ratio would cost time without a visible difference.
    this.ratio = Math.min(2, devicePixelRatio || 1);
    for (const canvas of [this.canvas, this.painting]) {
      canvas.width = Math.round(this.camera.width * this.ratio);
      canvas.height = Math.round(this.camera.height * this.ratio);
    }
    this.redraw();
  }

  /** Go to a position of the slider. The view follows the map. */
  slide(at) {
    this.places.set(at);
    const frame = [0, 1, 2, 3].map((side) => between(this.frames.map((one) => one[side]), at));
    this.camera.fit(frame);
    this.move();
  }

  /** See a solid from another side, or as at first. */
  turn([yaw, pitch] = OBLIQUE) {
    this.angles = [yaw, pitch];
    this.places.turn(yaw, pitch);
    this.points?.replace();
    this.move();
  }

  /** Whether a solid is not seen from the first side. */
  get isTurned() {
    return this.solid && this.angles.join() !== OBLIQUE.join();
  }

  move() {
    this.moved = performance.now();
    this.redraw();
  }

  redraw() {
    this.request ||= requestAnimationFrame(() => {
      this.request = 0;
      this.draw();
    });
  }

  /** Whether the view has more points than can be told apart. */
  get crowded() {
    if (this.n <= DENSE) return false;
    const { camera } = this;
    const [left, top] = camera.toMap(0, 0);
    const [right, bottom] = camera.toMap(camera.width, camera.height);
    return this.places.countIn([left, bottom, right, top]) > DENSE;
  }

  draw() {
    const moving = performance.now() - this.moved < SETTLED;
    const crowded = this.crowded;
    const inSoftware = crowded || !this.points || (this.points.emulated && moving);
    const renderer = crowded ? this.density : inSoftware || !this.points ? this.painter : this.points;
    renderer.draw(this.frame);
    this.painting.hidden = !inSoftware;
    clearTimeout(this.settling);
    this.resting = !(inSoftware && this.points && !crowded);
    if (!this.resting) this.settling = setTimeout(() => this.redraw(), SETTLED);
    this.drawn++;
    this.firstFrame ??= performance.now();
    this.onDraw();
  }

  /** Draw no more, and free the WebGL context, of which browsers keep only a few. */
  close() {
    cancelAnimationFrame(this.request);
    clearTimeout(this.settling);
    this.points?.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  /** Draw a frame on another canvas, without WebGL. */
  render(canvas, frame) {
    const Renderer = this.crowded ? Density : Painter;
    new Renderer(canvas, this.places, this.pixels).draw(frame);
  }

  recolour() {
    this.points?.recolour();
    this.redraw();
  }

  onScreen(row) {
    return this.camera.toScreen(...this.places.of(row));
  }

  /** The row drawn within some pixels of a place on the screen, or -1. */
  at(left, top, reach) {
    const [x, y] = this.camera.toMap(left, top);
    return this.places.nearest(x, y, (reach + this.size / 2) / this.camera.scale, this.dimmed ? this.pixels : null);
  }
}
