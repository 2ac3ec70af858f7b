// Mouse, pen, touch and keyboard input on the map, translated to actions.

const MOVED = 4; // pixels that a click or tap may move

export class Gestures {
  /**
   * `on` has the actions pan, drag (which pans, or turns a solid), zoom, hover, leave, pin (the point that is clicked), lasso (the outline so far), close
   * (the lasso, and how it changes the selection: "set", "add" or "remove"), home and middle.
   */
  constructor(surface, on) {
    this.surface = surface;
    this.on = on;
    this.fingers = new Map();
    /** @type {number[][] | null} */
    this.outline = null;
    this.lassoing = false;
    this.strayed = false;
    this.start = [0, 0];
    this.mode = "set";
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) surface.addEventListener(kind, (event) => this.up(event));
    // Lifting a finger is a leave event too, but the tooltip of the tapped point must stay.
    surface.addEventListener("pointerleave", (event) => {
      if (!this.fingers.size && event.pointerType !== "touch") on.leave();
    });
    surface.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    surface.addEventListener("dblclick", () => on.home());
    surface.addEventListener("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button) return;
    this.surface.setPointerCapture(event.pointerId);
    const place = this.place(event);
    this.fingers.set(event.pointerId, place);
    this.start = place;
    this.strayed = false;
    if (this.fingers.size > 1) this.drop();
    else if (event.shiftKey || event.altKey || this.lassoing) {
      this.mode = event.altKey ? "remove" : event.shiftKey ? "add" : "set";
      this.outline = [place];
      this.on.leave();
    }
  }

  move(event) {
    const place = this.place(event);
    const before = this.fingers.get(event.pointerId);
    if (!before) return this.on.hover(...place, 8);
    this.strayed ||= Math.hypot(place[0] - this.start[0], place[1] - this.start[1]) > MOVED;
    if (this.outline) {
      const [x, y] = this.outline[this.outline.length - 1];
      if (Math.hypot(place[0] - x, place[1] - y) < 3) return;
      this.outline.push(place);
      this.on.lasso(this.outline);
    } else if (this.fingers.size === 1) {
      if (!this.strayed) return;
      this.on[event.ctrlKey ? "pan" : "drag"](place[0] - before[0], place[1] - before[1]);
    } else this.pinch(event.pointerId, before, place);
    this.fingers.set(event.pointerId, place);
  }

  pinch(id, before, after) {
    const other = [...this.fingers].filter(([key]) => key !== id)[0][1];
    const spread = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
    const middle = ([x, y]) => [(x + other[0]) / 2, (y + other[1]) / 2];
    const [from, to] = [middle(before), middle(after)];
    this.on.pan(to[0] - from[0], to[1] - from[1]);
    this.on.zoom(spread(after) / spread(before), ...to);
  }

  up(event) {
    if (!this.fingers.delete(event.pointerId)) return;
    if (this.outline) {
      const outline = this.outline;
      this.drop();
      if (event.type === "pointerup" && outline.length > 2) this.on.close(outline, this.mode);
    } else if (event.type === "pointerup" && !this.strayed) this.on.pin(...this.place(event), 18);
  }

  drop() {
    this.outline = null;
    this.on.lasso([]);
  }

  wheel(event) {
    event.preventDefault();
    const turned = Math.max(-240, Math.min(240, event.deltaY * (event.deltaMode === 1 ? 16 : 1)));
    // Browsers report a pinch on a touchpad as a wheel event with the control key and small steps.
    this.on.zoom(Math.exp(-turned * (event.ctrlKey ? 0.01 : 0.002)), ...this.place(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key]) this.on.drag(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.on.zoom(1.4);
    else if (event.key === "-") this.on.zoom(1 / 1.4);
    else if (event.key === "0") this.on.home();
    else if (event.key === "Enter") this.on.middle();
    else return;
    event.preventDefault();
  }
}
