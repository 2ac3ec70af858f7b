// The slider between the maps of the data: from plain t-SNE to strong contraction, or between maps to compare.

import { Chart } from "./chart.js";
import { button } from "./dom.js";
import { between, brief, clamp, percent } from "./number.js";

const SECONDS_PER_STEP = 1.1;
const SPAN = 0.05; // of shares, which the axes cover at least: less than that looks flat, as it is

export class Stops {
  /** `path` has the strengths and curves of a contraction path; otherwise `maps` has the names of the maps. */
  constructor(panel, { path, maps }, onMove) {
    this.panel = panel;
    this.path = path;
    this.maps = maps;
    this.onMove = onMove;
    this.last = (maps ?? path.contractions).length - 1;
    this.at = path?.chosen ?? 0;
    this.playing = 0;
    this.charts = [];
    this.buttons = [];
    this.slider = panel.querySelector("input");
    this.strength = panel.querySelector(".strength");
    this.play = panel.querySelector(".play");
    this.slider.max = this.last;
    this.slider.addEventListener("input", () => { this.stop(); this.set(Number(this.slider.value)); });
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.play.addEventListener("click", () => (this.playing ? this.stop() : this.start()));
    this.mark();
    if (path) this.draw();
    else this.name();
    this.look(false);
    this.set(this.at);
    panel.hidden = false;
  }

  /** Titles of the maps. */
  titles() {
    const { path } = this;
    return this.maps ?? path.contractions.map((value, i) => `λ = ${brief(value)}${i === path.chosen ? ", the model's own map" : ""}`);
  }

  mark() {
    this.titles().forEach((title, i) => {
      const mark = button(this.path?.chosen === i ? "mark chosen" : "mark", "", () => this.go(i));
      mark.tabIndex = -1; // the slider's keys reach every map
      mark.title = title;
      mark.setAttribute("aria-label", title);
      mark.style.left = `calc(8px + (100% - 16px) * ${i / this.last})`;
      this.panel.querySelector(".marks").append(mark);
    });
  }

  go(at) {
    this.stop();
    this.set(at);
  }

  /** Maps to compare: a button for each instead of strengths and charts. */
  name() {
    this.panel.setAttribute("aria-label", "Map");
    this.panel.querySelector("h2").textContent = "Map";
    this.slider.setAttribute("aria-label", `Map, from ${this.maps[0]} to ${this.maps[this.last]}`);
    for (const part of ["lambda", "ends", "charts", "details", "note"]) this.panel.querySelector(`.${part}`).hidden = true;
    this.buttons = this.maps.map((name, i) => button("plain", name, () => this.go(i)));
    this.panel.querySelector(".maps").append(...this.buttons);
  }

  draw() {
    const { kl, trustworthiness, kept, seen, eigenvalues } = this.path;
    const digits = (n) => ([value]) => value.toFixed(n);
    const share = (help) => ({ tell: ([value]) => percent(value), span: SPAN, help });
    // The smallest eigenvalue is always 0.
    const sigmas = eigenvalues[0].map((_, k) => eigenvalues.map((row) => row[k])).slice(1);
    const known = (curves) => curves.some((curve) => curve.some((value) => value !== null));
    const rough = (value) => String(Number(value.toPrecision(2)));
    const ends = (values) => (values.length > 1 ? `${rough(values[0])} … ${rough(values[values.length - 1])}` : rough(values[0]));
    const made = (parts) => parts.filter(([, curves]) => curves.length && known(curves))
      .map(([title, curves, options]) => new Chart(title, curves, options));
    const shown = made([
      ["Trustworthiness", [trustworthiness],
        { tell: digits(4), span: SPAN, help: "1 if all neighbours in the map are neighbours in the data." }],
      ["Neighbours kept", [kept], share("Nearest neighbours in the data kept in the map.")],
      ["Neighbours seen", [seen], share("The same after the map is drawn in 400 × 400 pixels.")],
    ]);
    const details = made([
      ["KL divergence", [kl],
        { tell: digits(3), help: "The loss of t-SNE: how much neighbourhoods differ between data and map." }],
      [sigmas.length > 1 ? `Eigenvalues 2 to ${sigmas.length + 1}` : "Eigenvalue 2", sigmas,
        { tell: ends, log: true, help: "Of the map's graph Laplacian, log scale: one near 0 per separate cluster." }],
    ]);
    this.charts = [...shown, ...details];
    this.panel.querySelector(".charts").append(...shown.map((chart) => chart.box));
    this.panel.querySelector(".details").append(...details.map((chart) => chart.box));
  }

  set(at) {
    this.at = clamp(at, 0, this.last);
    this.slider.value = this.at;
    if (this.path) {
      const strength = brief(Number(Number(between(this.path.contractions, this.at)).toPrecision(3)));
      this.strength.textContent = strength;
      this.slider.setAttribute("aria-valuetext", `contraction ${strength}`);
    } else this.slider.setAttribute("aria-valuetext", this.maps[Math.round(this.at)]);
    this.buttons.forEach((one, i) => one.setAttribute("aria-pressed", i === this.at));
    for (const chart of this.charts) chart.move(this.at);
    this.onMove(this.at);
  }

  /** Arrow keys move by a tenth of the distance between two maps, Page Up and Page Down from map to map. */
  key(event) {
    const steps = { ArrowLeft: -0.1, ArrowDown: -0.1, ArrowRight: 0.1, ArrowUp: 0.1 };
    const maps = { PageDown: Math.ceil(this.at) - 1, PageUp: Math.floor(this.at) + 1 };
    if (!(event.key in steps || event.key in maps)) return;
    event.preventDefault();
    this.go(event.key in maps ? maps[event.key] : Math.round((this.at + steps[event.key]) * 100) / 100);
  }

  start() {
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
    this.play.classList.toggle("on", playing);
    const what = this.path ? "Play from plain t-SNE to strong contraction" : "Play from map to map";
    this.play.setAttribute("aria-label", playing ? "Pause" : what);
  }
}
