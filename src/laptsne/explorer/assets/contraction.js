// The slider from plain t-SNE to strong contraction, and the charts beside it.

const SECONDS_PER_STEP = 1.1;

class Contraction {
  constructor(panel, path, onMove) {
    Object.assign(this, { panel, path, onMove, last: path.contractions.length - 1, at: path.chosen, playing: 0 });
    this.slider = panel.querySelector("input");
    this.strength = panel.querySelector(".strength");
    this.button = panel.querySelector(".play");
    this.slider.max = this.last;
    this.slider.addEventListener("input", () => { this.stop(); this.set(Number(this.slider.value)); });
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.button.addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    this.mark();
    this.draw();
    this.set(this.at);
    panel.hidden = false;
  }

  mark() {
    const marks = this.panel.querySelector(".marks");
    this.path.contractions.forEach((value, i) => {
      const mark = element("button", i === this.path.chosen ? "mark chosen" : "mark");
      mark.type = "button";
      mark.tabIndex = -1; // the slider's keys reach every map
      mark.title = `λ = ${brief(value)}${i === this.path.chosen ? ", the model's own map" : ""}`;
      mark.setAttribute("aria-label", mark.title);
      mark.style.left = `calc(8px + (100% - 16px) * ${i / this.last})`;
      mark.addEventListener("click", () => { this.stop(); this.set(i); });
      marks.append(mark);
    });
  }

  draw() {
    const { kl, trustworthiness, kept, seen, eigenvalues } = this.path;
    const percent = ([share]) => `${(100 * share).toFixed(1)} %`;
    const digits = (n) => ([value]) => value.toFixed(n);
    // The smallest eigenvalue is always 0.
    const sigmas = eigenvalues[0].map((_, k) => eigenvalues.map((row) => row[k])).slice(1);
    const known = (curves) => curves.some((curve) => curve.some((value) => value !== null));
    const rough = (value) => String(Number(value.toPrecision(2)));
    const ends = (values) => (values.length > 1 ? `${rough(values[0])} … ${rough(values.at(-1))}` : rough(values[0]));
    this.charts = [
      ["KL divergence", [kl],
        { tell: digits(3), help: "The loss of t-SNE: how much neighbourhoods differ between data and map." }],
      ["Trustworthiness", [trustworthiness],
        { tell: digits(4), help: "1 if all neighbours in the map are neighbours in the data." }],
      ["Neighbours kept", [kept],
        { tell: percent, help: "Nearest neighbours in the data kept in the map." }],
      ["Neighbours seen", [seen],
        { tell: percent, help: "The same after the map is drawn in 400 × 400 pixels." }],
      [sigmas.length > 1 ? `Eigenvalues 2 to ${sigmas.length + 1}` : "Eigenvalue 2", sigmas,
        { tell: ends, log: true, help: "Of the map's graph Laplacian, log scale: one near 0 per separate cluster." }],
    ].filter(([, curves]) => curves.length && known(curves)).map((parts) => new Chart(...parts));
    this.panel.querySelector(".charts").append(...this.charts.map((chart) => chart.box));
  }

  set(at) {
    this.at = Math.min(this.last, Math.max(0, at));
    this.slider.value = this.at;
    const strength = brief(Number(between(this.path.contractions, this.at).toPrecision(3)));
    this.strength.textContent = strength;
    this.slider.setAttribute("aria-valuetext", `contraction ${strength}`);
    for (const chart of this.charts) chart.move(this.at);
    this.onMove(this.at);
  }

  /** Arrow keys move by a tenth of the distance between two maps, Page Up and Page Down from map to map. */
  key(event) {
    const steps = { ArrowLeft: -0.1, ArrowDown: -0.1, ArrowRight: 0.1, ArrowUp: 0.1 };
    const maps = { PageDown: Math.ceil(this.at) - 1, PageUp: Math.floor(this.at) + 1 };
    if (!(event.key in steps || event.key in maps)) return;
    event.preventDefault();
    this.stop();
    this.set(event.key in maps ? maps[event.key] : Math.round((this.at + steps[event.key]) * 100) / 100);
  }

  play() {
    if (this.at >= this.last) this.set(0);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.look(true);
    let before = performance.now();
    let waited = 0;
    const step = (now) => {
      const passed = Math.min(0.1, Math.max(0, now - before) / 1000) / SECONDS_PER_STEP;
      before = now;
      waited += passed;
      if (!still) this.set(this.at + passed);
      else if (waited >= 1) { // reduced motion: jump from map to map
        waited = 0;
        this.set(Math.floor(this.at) + 1);
      }
      if (this.at >= this.last) this.stop();
      else this.playing = requestAnimationFrame(step);
    };
    this.playing = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.look(false);
  }

  look(playing) {
    this.button.classList.toggle("on", playing);
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play from plain t-SNE to strong contraction");
  }
}
