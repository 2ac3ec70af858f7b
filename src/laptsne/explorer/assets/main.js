// The explorer as a whole: connects the data, the camera, the slider, the colours and the highlighted points.

const $ = (id) => document.getElementById(id);

const SETTLED = 150; // milliseconds without motion after which the map is drawn at full quality

class Explorer {
  constructor(data) {
    this.data = data;
    this.n = data.points;
    this.columns = data.columns.map((column) => new Column(column, data.palette));
    this.at = 0;
    this.xs = new Float32Array(this.n);
    this.ys = new Float32Array(this.n);
    this.camera = new Camera(this.extent());
    this.colours = new Uint8Array(4 * this.n);
    this.points = Points.on($("map"), data.positions, this.n, this.colours);
    this.painter = new Painter($("painting"), data.positions, this.n, this.colours);
    $("size").textContent = plural(this.n, "point");
    this.tooltip = new Tooltip($("tooltip"), $("ring"), this.columns, data.images);
    this.legend = new Legend($("legend"), () => this.relight());
    const on = { change: () => this.relight(), visit: (row) => this.visit(row), csv: (rows) => this.csv(rows) };
    this.search = new Search($("search"), $("matches"), this.columns, this.n, on);
    this.selection = new Selection($("selection"), this.columns, this.n, on);
    this.connect();
    this.chooseColour(data.color);
    if (data.path) this.contraction = new Contraction($("contraction"), data.path, (at) => this.slide(at));
    this.resize();
  }

  extent() {
    const most = [0, 0];
    this.data.positions.forEach((value, i) => { if (value > most[i % 2]) most[i % 2] = value; });
    return most.map((value) => value / 65535);
  }

  connect() {
    this.gestures = new Gestures($("map"), {
      pan: (right, down) => this.look(() => this.camera.pan(right, down)),
      zoom: (factor, left, top) => this.look(() => this.camera.zoomAt(factor, left, top)),
      home: () => this.look(() => this.camera.home()),
      hover: (left, top, reach) => this.hover(left, top, reach),
      leave: () => this.tooltip.hide(),
      middle: () => this.hover(this.camera.width / 2, this.camera.height / 2, 200),
      lasso: (outline) => $("outline").setAttribute("points", outline.map((place) => place.join(",")).join(" ")),
      close: (outline) => this.enclose(outline),
    });
    $("nearer").addEventListener("click", () => this.gestures.on.zoom(1.4));
    $("farther").addEventListener("click", () => this.gestures.on.zoom(1 / 1.4));
    $("home").addEventListener("click", () => this.gestures.on.home());
    $("lasso").addEventListener("click", () => this.setLasso(!this.gestures.lassoing));
    $("select").addEventListener("click", () => this.selection.set(this.wanted()));
    $("theme").addEventListener("click", () => this.setTheme(this.dark ? "light" : "dark"));
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    new ResizeObserver(() => this.resize()).observe($("stage"));
    $("map").addEventListener("webglcontextlost", (event) => event.preventDefault());
    $("map").addEventListener("webglcontextrestored", () => { this.points.prepare(); this.redraw(); });
    this.offerColumns();
  }

  offerColumns() {
    $("colouring").hidden = !this.columns.length;
    $("facts").hidden = this.columns.length < 2;
    $("search").disabled = !this.columns.length;
    this.columns.forEach((column, i) => {
      const option = element("option", "", column.name);
      option.value = i;
      $("colour").append(option);
      const label = element("label", "fact");
      const box = element("input");
      Object.assign(box, { type: "checkbox", checked: this.tooltip.chosen.has(column) });
      box.addEventListener("change", () => this.tooltip.chosen[box.checked ? "add" : "delete"](column));
      label.append(box, element("span", "", column.name));
      $("facts").append(label);
    });
    const none = element("option", "", "nothing");
    none.value = "";
    $("colour").append(none);
    $("colour").addEventListener("change", () => {
      const { value } = $("colour");
      this.chooseColour(value === "" ? null : Number(value));
    });
    $("scaled").addEventListener("change", () => {
      this.column.scaled = $("scaled").checked;
      this.legend.clear();
      this.repaint();
    });
  }

  chooseColour(index) {
    this.column = index === null ? null : this.columns[index];
    $("colour").value = index === null ? "" : index;
    $("as-scale").hidden = !this.column || !this.column.numeric;
    $("scaled").checked = !!this.column && this.column.scaled;
    this.repaint();
  }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.repaint();
  }

  setLasso(on) {
    this.gestures.lassoing = on;
    $("lasso").setAttribute("aria-pressed", on);
    $("map").classList.toggle("lassoing", on);
  }

  get dark() {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  /** Recompute all colours after a change of column or theme. */
  repaint() {
    this.paper = parseColour(getComputedStyle($("stage")).backgroundColor);
    const grey = this.dark ? [120, 126, 136] : [150, 154, 160];
    const plain = this.column ? grey : parseColour(this.data.palette[0]);
    const { colours } = this;
    if (this.column) this.column.paint(colours, this.dark, grey);
    else for (let i = 0; i < this.n; i++) colours.set(plain, 4 * i);
    this.legend.show(this.column, this.dark, grey);
    $("theme").setAttribute("aria-pressed", this.dark);
    this.relight();
  }

  /** Highlight the points that the legend, the search and the selection have in common. */
  relight() {
    const masks = [this.legend.mask(), this.search.found, this.selection.mask].filter(Boolean);
    for (let row = 0; row < this.n; row++) this.colours[4 * row + 3] = masks.every((mask) => mask[row]) ? 255 : 0;
    this.points?.recolour();
    this.dimmed = masks.length > 0;
    const asked = this.legend.lit.size > 0 || this.search.found !== null;
    const count = asked ? this.wanted().length : 0;
    $("select").hidden = !count;
    $("select").textContent = `Select ${count === 1 ? "this point" : `these ${plural(count, "point")}`}`;
    this.redraw();
  }

  /** Rows highlighted by the legend and the search. */
  wanted() {
    const masks = [this.legend.mask(), this.search.found].filter(Boolean);
    const rows = [];
    for (let row = 0; row < this.n; row++) if (masks.every((mask) => mask[row])) rows.push(row);
    return rows;
  }

  slide(at) {
    this.at = at;
    this.move();
  }

  look(change) {
    change();
    this.move();
  }

  move() {
    this.moved = performance.now();
    this.redraw();
  }

  resize() {
    const stage = $("stage");
    this.camera.width = Math.max(1, stage.clientWidth);
    this.camera.height = Math.max(1, stage.clientHeight);
    // A higher pixel ratio would cost time without a visible difference.
    this.density = Math.min(2, devicePixelRatio || 1);
    for (const canvas of [$("map"), $("painting")]) {
      canvas.width = Math.round(this.camera.width * this.density);
      canvas.height = Math.round(this.camera.height * this.density);
    }
    $("outlines").setAttribute("viewBox", `0 0 ${this.camera.width} ${this.camera.height}`);
    this.redraw();
  }

  /** Diameter of a point in pixels: larger for few points and when zoomed in. */
  get size() {
    const room = Math.sqrt((this.camera.width * this.camera.height) / this.n);
    return Math.min(18, Math.min(7, 1.1 + 0.25 * room) * Math.max(1, this.camera.zoom) ** 0.4);
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { camera, at, paper, size, density, dimmed } = this;
    const moving = performance.now() - (this.moved ?? -Infinity) < SETTLED;
    const byHand = !this.points || (this.points.emulated && moving);
    const ink = this.n > 20000 ? 0.75 : 0.88;
    const drawn = { camera, at, states: this.data.states, paper, size, ink, density, dimmed };
    (byHand ? this.painter : this.points).draw(drawn);
    $("painting").hidden = !byHand;
    clearTimeout(this.settling);
    if (byHand && this.points) this.settling = setTimeout(() => this.redraw(), SETTLED);
    if (this.tooltip.row >= 0) this.tooltip.show(this.tooltip.row, this.onScreen(this.tooltip.row), size);
    this.frames = (this.frames || 0) + 1;
    this.firstFrame ??= performance.now();
  }

  /** Position of a row in map coordinates. */
  place(row) {
    const { positions, states } = this.data;
    const left = Math.floor(this.at);
    const right = Math.min(left + 1, states - 1);
    return [0, 1].map((axis) => {
      const a = positions[2 * (this.n * left + row) + axis];
      const b = positions[2 * (this.n * right + row) + axis];
      return (a + (b - a) * (this.at - left)) / 65535;
    });
  }

  onScreen(row) {
    return this.camera.toScreen(...this.place(row));
  }

  /** Spatial index of the current positions, built on demand because the slider invalidates it. */
  grid() {
    if (this.indexed === this.at) return this.index;
    for (let row = 0; row < this.n; row++) [this.xs[row], this.ys[row]] = this.place(row);
    this.index = new Grid(this.xs, this.ys);
    this.indexed = this.at;
    return this.index;
  }

  hover(left, top, reach) {
    if (this.contraction?.playing) return;
    const [x, y] = this.camera.toMap(left, top);
    const lit = (row) => !this.dimmed || this.colours[4 * row + 3] > 0;
    const row = this.grid().nearest(x, y, (reach + this.size / 2) / this.camera.scale, lit);
    if (row < 0) this.tooltip.hide();
    else this.tooltip.show(row, this.onScreen(row), this.size);
  }

  /** Centre the view on a row and show its tooltip. */
  visit(row) {
    [this.camera.x, this.camera.y] = this.place(row);
    this.camera.zoom = Math.max(this.camera.zoom, 4);
    this.tooltip.show(row, this.onScreen(row), this.size);
    this.redraw();
  }

  enclose(outline) {
    this.grid();
    this.tooltip.hide();
    this.selection.set(insideOutline(outline.map((place) => this.camera.toMap(...place)), this.xs, this.ys));
    this.setLasso(false);
  }

  csv(rows) {
    const [x, y, side] = ["x", "y", "side"].map((part) => between(this.data.boxes.map((box) => box[part]), this.at));
    const place = (row) => {
      const [across, up] = this.place(row);
      return [Math.fround(x + across * side), Math.fround(y + up * side)];
    };
    return rowsAsCSV(rows, this.columns, place);
  }

  key(event) {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape") this.clear();
    else if (event.key === "/" && !typing) {
      event.preventDefault();
      $("search").focus();
    } else if (event.target === document.body) this.gestures.key(event);
  }

  clear() {
    this.setLasso(false);
    this.gestures.drop();
    this.tooltip.hide();
    this.legend.clear();
    this.search.clear();
    this.selection.set([]);
  }

  /** Images are unpacked after the first frame. */
  async loadImages() {
    if (this.data.images) this.tooltip.pixels = new Uint8Array(await unpack("images"));
  }

  /** State for tests and for the browser's console. */
  readout() {
    const self = this;
    return {
      get points() { return self.n; },
      get view() { return { x: self.camera.x, y: self.camera.y, zoom: self.camera.zoom }; },
      get slider() { return self.at; },
      set slider(at) { self.contraction.set(at); },
      get selected() { return [...self.selection.rows]; },
      get lit() {
        return self.dimmed ? [...Array(self.n).keys()].filter((row) => self.colours[4 * row + 3]) : null;
      },
      get hovered() { return self.tooltip.row; },
      get frames() { return self.frames; },
      get firstFrame() { return self.firstFrame; },
      screen: (row) => self.onScreen(row),
      colour: (row) => [...self.colours.subarray(4 * row, 4 * row + 3)],
      images: self.images,
    };
  }
}

readData().then((data) => {
  const page = new Explorer(data);
  page.images = page.loadImages();
  window.explorer = page.readout();
}).catch((error) => {
  $("notice").textContent = `The map could not be opened: ${error.message}. Please use a current browser.`;
  $("notice").hidden = false;
  throw error;
});
