// The explorer as a whole: connects the map, the slider, the colours and the highlighted points.

import { Card } from "./card.js";
import { packed, parseColour } from "./colour.js";
import { Charts } from "./charts.js";
import { Column } from "./column.js";
import { Comparison } from "./comparison.js";
import { rowsAsCSV } from "./csv.js";
import { inflated } from "./data.js";
import { element } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Features } from "./features.js";
import { Gestures } from "./gesture.js";
import { Legend } from "./legend.js";
import { Naming } from "./naming.js";
import { between, clamp, plural } from "./number.js";
import { savePNG, saveSVG } from "./picture.js";
import { UNIT } from "./places.js";
import { Search } from "./search.js";
import { SelectedRows, common } from "./selection.js";
import { Stage } from "./stage.js";
import { Stops } from "./stops.js";
import { Theme } from "./theme.js";
import { Tooltip } from "./tooltip.js";

const NARROW = 720; // pixels, below which the panels are under the map
const TOOLS = 56; // pixels that the tools take up on the left of the map, and below it there

export class Explorer {
  /**
   * The explorer in a document or shadow root that has its elements.
   * @param {any} root
   * @param {import("./data.js").Data} data
   * @param {{block: Function, notebook?: boolean}} source
   */
  constructor(root, data, source) {
    this.get = (id) => root.getElementById(id);
    this.host = root.querySelector(".explorer");
    this.data = data;
    this.source = source;
    this.n = data.points;
    this.columns = data.columns.map((column) => new Column(column, data.palette));
    this.colourable = [...this.columns];
    /** @type {Column | null} */
    this.column = null; // by which points are coloured
    /** @type {{shape: number[] | null, pixels: Uint8Array | null}} */
    this.pictures = { shape: data.images, pixels: null };
    this.onChange = () => {}; // of the view, the colour or the selection
    this.theme = new Theme(this.host, source.notebook ?? false, () => this.repaint());
    this.stage = new Stage(this.get("stage"), this.get("map"), this.get("painting"), data, () => this.follow());
    const { get, columns, n } = this;
    if (this.stage.solid) get("map").ariaLabel = get("map").ariaLabel.replace("pan", "turn the map");
    get("title").textContent = data.title;
    get("size").textContent = plural(n, "point");
    this.naming = new Naming(get("names"), this.stage.places);
    this.tooltip = new Tooltip(get("tooltip"), get("ring"), columns, this.pictures);
    this.card = new Card(get("card"), columns, this.pictures, () => this.stage.redraw());
    this.legend = new Legend(get("legend"), () => this.relight());
    this.charts = new Charts(get("charts"), columns, () => this.relight(), (chart) => chart.tell(common(this.asked, this.selection.mask)));
    /** @type {Uint8Array | null} */
    this.asked = null; // rows that the filters and the search have in common
    const on = { change: () => this.relight(), visit: (row) => this.visit(row), csv: (rows) => this.csv(rows) };
    this.search = new Search(get("search"), get("matches"), columns, n, on);
    this.selection = new SelectedRows(get("selection"), columns, n, on);
    this.features = data.features && new Features(data.features, () => source.block("features"), data.palette);
    this.comparison = new Comparison(get("comparison"), columns, this.features);
    const select = (rows, mode) => this.selection.set(rows, mode);
    this.evidence = data.evidence && new Evidence(get("evidence"), data.evidence, columns[data.evidence.column], select);
    this.gestures = this.connect();
    this.offerAppearance();
    this.offerColumns();
    this.chooseColour(data.color === null ? null : this.columns[data.color]);
    if (data.path || data.maps) this.stops = new Stops(this.get("contraction"), data, (at) => this.slide(at));
    this.resize();
  }

  /** Connect the elements with what they do; returns the gestures on the map. */
  connect() {
    const { get, stage } = this;
    const gestures = new Gestures(get("map"), {
      pan: (right, down) => this.look((camera) => camera.pan(right, down)),
      drag: (right, down) => this.drag(right, down),
      zoom: (factor, left, top) => this.look((camera) => camera.zoomAt(factor, left, top)),
      home: () => {
        if (stage.solid) stage.turn();
        this.look((camera) => camera.home());
      },
      hover: (left, top, reach) => this.hover(left, top, reach),
      pin: (left, top, reach) => this.pin(stage.at(left, top, reach)),
      leave: () => this.tooltip.hide(),
      middle: () => this.pin(stage.at(...stage.camera.toScreen(...stage.camera.middle), 200)),
      lasso: (outline) => get("outline").setAttribute("points", outline.map((place) => place.join(",")).join(" ")),
      close: (outline, mode) => this.enclose(outline, mode),
    });
    const actions = {
      nearer: () => gestures.on.zoom(1.4),
      farther: () => gestures.on.zoom(1 / 1.4),
      home: () => gestures.on.home(),
      lasso: () => this.setLasso(!gestures.lassoing),
      select: () => this.selection.set(this.wanted()),
      theme: () => this.theme.toggle(),
      png: () => this.save(savePNG),
      svg: () => this.save(saveSVG),
    };
    for (const id in actions) get(id).addEventListener("click", actions[id]);
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.observers = [new ResizeObserver(() => this.resize()), new ResizeObserver(() => this.arrange())];
    this.observers[0].observe(get("stage"));
    this.observers[1].observe(this.host);
    this.arrange();
    return gestures;
  }

  offerAppearance() {
    const { get, stage } = this;
    get("point-size").addEventListener("input", () => {
      stage.enlarged = 2 ** Number(get("point-size").value);
      stage.redraw();
    });
    get("opacity").value = stage.ink;
    get("opacity").addEventListener("input", () => {
      stage.opacity = Number(get("opacity").value);
      stage.redraw();
    });
    get("named").addEventListener("change", () => stage.redraw());
  }

  offerColumns() {
    const { get } = this;
    get("colouring").hidden = !this.columns.length && !this.features;
    get("facts").hidden = this.columns.length < 2;
    get("search").disabled = !this.columns.length;
    for (const column of this.columns) {
      this.offerColour(column);
      const label = element("label", "fact");
      const box = element("input");
      Object.assign(box, { type: "checkbox", checked: this.tooltip.chosen.has(column) });
      box.addEventListener("change", () => this.tooltip.chosen[box.checked ? "add" : "delete"](column));
      label.append(box, element("span", "", column.name));
      get("facts").append(label);
    }
    const none = element("option", "", "nothing");
    none.value = "";
    get("colour").append(none);
    get("colour").addEventListener("change", () => this.chooseColour(this.colourable[get("colour").value] ?? null));
    get("scaled").addEventListener("change", () => {
      if (this.column) this.column.scaled = get("scaled").checked;
      this.legend.clear();
      this.repaint();
    });
    get("feature").hidden = !this.features;
    if (!this.features) return;
    this.features.offer(get("feature"), get("feature-names"), (index) => this.chooseFeature(index));
    get("feature-note").textContent = this.data.features.note;
  }

  offerColour(column) {
    const option = element("option", "", column.name);
    option.value = this.colourable.indexOf(column);
    this.get("colour").append(option);
  }

  async chooseFeature(index) {
    const column = await this.features.column(index);
    if (!this.colourable.includes(column)) {
      this.colourable.push(column);
      this.offerColour(column);
    }
    this.chooseColour(column);
  }

  /** Colour by the column or feature of this name; without one, points have one colour. */
  chooseColourNamed(name) {
    const found = this.colourable.find((column) => column.name === name);
    const index = found ? -1 : (this.features?.names.indexOf(name) ?? -1);
    if (index >= 0) this.chooseFeature(index);
    else this.chooseColour(found ?? null);
  }

  chooseColour(column) {
    const { get } = this;
    this.column = column;
    get("colour").value = column ? this.colourable.indexOf(column) : "";
    get("as-scale").hidden = !column?.numeric;
    get("scaled").checked = Boolean(column?.scaled);
    this.charts.omit(column);
    this.repaint();
  }

  setLasso(on) {
    this.gestures.lassoing = on;
    this.get("lasso").setAttribute("aria-pressed", on);
    this.get("map").classList.toggle("lassoing", on);
  }

  /** Recompute all colours after a change of column or theme. */
  repaint() {
    const { stage, theme: { dark } } = this;
    stage.paper = parseColour(getComputedStyle(stage.box).backgroundColor);
    const grey = dark ? [120, 126, 136] : [150, 154, 160];
    if (this.column) this.column.paint(stage.pixels, dark, grey);
    else stage.pixels.fill(packed(parseColour(this.data.palette[0])));
    this.legend.show(this.column, dark, grey);
    this.evidence?.show(dark, grey, this.column);
    this.get("theme").setAttribute("aria-pressed", dark);
    this.relight();
  }

  /** Highlight the points that the legend, the charts, the search and the selection have in common. */
  relight() {
    const { stage: { pixels }, stage, n, selection } = this;
    const masks = this.filters.map((filter) => filter.mask());
    const asked = common(this.search.found, ...masks);
    const mask = common(asked, selection.mask);
    this.asked = asked;
    let count = 0;
    for (let row = 0; row < n; row++) {
      pixels[row] = (pixels[row] & 0xffffff) | (!mask || mask[row] ? 0xff000000 : 0);
      if (asked) count += asked[row];
    }
    stage.dimmed = mask !== null;
    const { get } = this;
    get("select").hidden = !count;
    get("select").textContent = `Select ${count === 1 ? "this point" : `these ${plural(count, "point")}`}`;
    this.comparison.show(selection.mask);
    this.tell(masks, mask);
    stage.recolour();
    this.onChange();
  }

  get filters() {
    return [this.legend, ...this.charts.legends];
  }

  /** Show in each chart what the other filters leave, so that it can be widened. */
  tell(masks, mask) {
    const others = (i) => masks.filter((_, j) => j !== i);
    this.filters.forEach((filter, i) => {
      filter.tell(masks[i] ? common(this.search.found, this.selection.mask, ...others(i)) : mask);
    });
  }

  /** Rows highlighted by the legend, the charts and the search. */
  wanted() {
    const rows = [];
    for (let row = 0; row < this.n; row++) if (!this.asked || this.asked[row]) rows.push(row);
    return rows;
  }

  slide(at) {
    this.stage.slide(at);
    this.onChange();
  }

  look(change) {
    change(this.stage.camera);
    this.stage.move();
    this.onChange();
  }

  /** Drag the map: a solid is turned, by half a turn across the view. */
  drag(right, down) {
    const { stage } = this;
    if (!stage.solid) return this.look((camera) => camera.pan(right, down));
    const unit = Math.PI / Math.min(stage.camera.width, stage.camera.height);
    stage.turn([stage.angles[0] + right * unit, stage.angles[1] + down * unit]);
    this.onChange();
  }

  arrange() {
    const narrow = this.host.clientWidth <= NARROW;
    this.host.classList.toggle("narrow", narrow);
    this.stage.camera.insets = narrow ? [0, TOOLS] : [TOOLS, 0];
  }

  resize() {
    this.stage.resize();
    const { width, height } = this.stage.camera;
    this.get("outlines").setAttribute("viewBox", `0 0 ${width} ${height}`);
  }

  /** The column whose names are on the map: the colours', or else the clusters'. */
  get named() {
    if (!this.get("named").checked) return null;
    const clusters = this.columns[this.data.evidence?.column ?? this.columns.findIndex(({ name }) => name === "cluster")];
    return [this.column, clusters].find((column) => column && Naming.canName(column)) ?? null;
  }

  /** Move names, tooltip and ring to where the points have been drawn. */
  follow() {
    const { stage, tooltip, named } = this;
    this.charts.start();
    this.get("as-names").hidden = !named && this.get("named").checked;
    this.naming.draw(named, named === this.column ? this.legend.lit : new Set(), stage.camera);
    if (tooltip.row >= 0) tooltip.show(tooltip.row, stage.onScreen(tooltip.row), stage.size);
    const ring = this.get("pin");
    ring.hidden = this.card.row < 0;
    if (ring.hidden) return;
    const [x, y] = stage.onScreen(this.card.row);
    ring.style.width = ring.style.height = `${stage.size + 9}px`;
    ring.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
  }

  hover(left, top, reach) {
    if (this.stops?.playing || this.host.classList.contains("narrow")) return;
    const row = this.stage.at(left, top, reach);
    if (row < 0 || row === this.card.row) this.tooltip.hide();
    else this.tooltip.show(row, this.stage.onScreen(row), this.stage.size);
  }

  /** Show the card of a row, or hide it if there is none. */
  pin(row) {
    if (row < 0) this.card.hide();
    else this.card.show(row);
    this.tooltip.hide();
    this.stage.redraw();
  }

  /** Centre the view on a row and show its card. */
  visit(row) {
    const { camera } = this.stage;
    camera.zoom = Math.max(camera.zoom, 4);
    camera.look(...this.stage.places.of(row));
    this.pin(row);
  }

  enclose(outline, mode) {
    this.tooltip.hide();
    this.selection.set(this.stage.places.inside(outline.map((place) => this.stage.camera.toMap(...place))), mode);
    this.setLasso(false);
  }

  /** Coordinates of a row as they were given. */
  coordinates(row) {
    const { places: { left, right, at, n } } = this.stage;
    const { boxes, positions } = this.data;
    const given = [left, right].map((state) => {
      const { corner, side, turn } = boxes[state];
      const start = corner.length * (n * state + row);
      const turned = corner.map((low, axis) => low + (positions[start + axis] / UNIT) * side);
      return turn.map((weights) => weights.reduce((sum, weight, axis) => sum + weight * turned[axis], 0));
    });
    return given[0].map((_, axis) => Math.fround(Number(between(given.map((place) => place[axis]), at - left))));
  }

  csv(rows) {
    return rowsAsCSV(rows, this.columns, (row) => this.coordinates(row));
  }

  /** Save the view as an image. */
  save(write) {
    const { stage } = this;
    const text = getComputedStyle(this.host).color;
    write(stage.frame, (canvas, frame) => stage.render(canvas, frame), this.naming, text, stage.places, stage.pixels);
    this.get("images-menu").open = false;
  }

  key(event) {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape") this.clear();
    else if (event.key === "/" && !typing) {
      event.preventDefault();
      this.get("search").focus();
    } else if (event.target === this.host) this.gestures.key(event);
    if (this.source.notebook) event.stopPropagation(); // the notebook has keys of its own
  }

  clear() {
    this.setLasso(false);
    this.gestures.drop();
    this.tooltip.hide();
    this.card.hide();
    for (const filter of this.filters) filter.clear();
    this.search.clear();
    this.selection.set([]);
  }

  /** Stop drawing and observing, when a notebook removes the explorer. */
  close() {
    this.onChange = () => {};
    this.theme.close();
    for (const observer of this.observers ?? []) observer.disconnect();
    this.stops?.stop();
    this.stage.close();
  }

  /** Images are unpacked after the first frame. */
  async loadImages() {
    if (this.data.images) this.pictures.pixels = new Uint8Array(await inflated(this.source.block("images")));
  }

  /** The view, from a link: offset from the centre of the map in its sides, and zoom. */
  setView([x, y, zoom]) {
    const { camera } = this.stage;
    if (![x, y, zoom].every(Number.isFinite)) return;
    camera.zoom = clamp(zoom, 0.5, 400);
    camera.look(camera.centre[0] + x, camera.centre[1] + y);
    this.stage.redraw();
  }
}
