// A threshold with the histogram of what it parts.
import { h, shown, svg } from "./dom.js";
import { STEPS, stepOf } from "./matches.js";

let number = 0;

/** A slider on [0, 1]; `oninput(threshold)` is called while it moves. */
export class Slider {
  constructor({ label, oninput }) {
    const id = `slider-${number += 1}`;
    this.bars = svg("svg", { class: "histogram", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.input = h("input", { id, type: "range", min: 0, max: STEPS, step: 1, oninput: () => {
      this.draw();
      oninput(this.threshold);
    } });
    this.output = h("output", { for: id, class: "threshold" });
    this.element = h("div", { class: "slider" }, h("label", { for: id }, label, " ", this.output), this.bars, this.input);
  }

  get threshold() {
    return Number(this.input.value) / STEPS;
  }

  /** Set the threshold, and where the slider begins. */
  set(threshold, least) {
    this.input.min = stepOf(least);
    this.input.value = stepOf(threshold);
    this.draw();
  }

  /** Show how many there are in each step. */
  fill(histogram) {
    this.histogram = histogram;
    const first = Number(this.input.min), bins = Array.from(histogram.subarray(first));
    const most = Math.sqrt(Math.max(...bins, 1)); // square roots, so that few are seen beside many
    this.bars.setAttribute("viewBox", `0 0 ${bins.length} 40`);
    this.bars.replaceChildren(...bins.map((value, n) => {
      const tall = value ? Math.max(1, (40 * Math.sqrt(value)) / most) : 0;
      return svg("rect", { x: n + 0.08, y: 40 - tall, width: 0.84, height: tall });
    }));
    this.draw();
  }

  draw() {
    const value = Number(this.input.value), first = Number(this.input.min);
    this.output.textContent = shown(this.threshold);
    this.input.setAttribute("aria-valuetext", shown(this.threshold));
    for (const [n, bar] of [...this.bars.children].entries()) bar.classList.toggle("above", n + first >= value);
  }
}
