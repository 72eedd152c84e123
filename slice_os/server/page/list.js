// A list of any length: only the rows that are seen are elements.
import { h } from "./dom.js";

const TALLEST = 8_000_000; // pixels; browsers have none that are much taller

/** A list box of rows of one height; `render(n)` returns the content of row n, `onopen(n)` is Enter or a click. */
export class List {
  constructor({ label, render, onopen, onmove = () => {}, height = 44 }) {
    Object.assign(this, { render, onopen, onmove, height, length: 0, active: 0 });
    this.space = h("div", { class: "list-space", role: "presentation" });
    this.element = h("div", { class: "list", role: "listbox", "aria-label": label, tabindex: 0, onkeydown: (event) => this.press(event), onscroll: () => this.soon() }, this.space);
    this.id = `list-${label.replace(/\W/g, "-")}`;
    new ResizeObserver(() => this.soon()).observe(this.element);
  }

  /** Show rows 0 to `length`. */
  show(length, { reset = false } = {}) {
    this.length = length;
    if (reset) this.element.scrollTop = 0;
    this.active = reset ? 0 : Math.max(0, Math.min(this.active, length - 1));
    this.tall = Math.min(length * this.height, TALLEST);
    this.space.style.setProperty("height", `${this.tall}px`);
    this.soon();
  }

  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  /** Return which row is at the top, where the space is lower than all rows together. */
  first() {
    const seen = this.element.clientHeight, top = this.element.scrollTop;
    if (this.tall <= seen) return 0;
    return (top / (this.tall - seen)) * (this.length - seen / this.height);
  }

  draw() {
    const seen = this.element.clientHeight, first = this.first();
    const from = Math.max(0, Math.floor(first) - 2), to = Math.min(this.length, Math.ceil(first + seen / this.height) + 2);
    const rows = [];
    for (let n = from; n < to; n += 1) {
      rows.push(h("div", {
        class: "list-row", role: "option", id: `${this.id}-${n}`, "aria-selected": String(n === this.active), "aria-setsize": this.length, "aria-posinset": n + 1,
        style: { transform: `translateY(${this.element.scrollTop + (n - first) * this.height}px)`, height: `${this.height}px` },
        onclick: () => { this.move(n); this.onopen(n); },
      }, this.render(n)));
    }
    this.space.replaceChildren(...rows);
    if (this.active >= from && this.active < to) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Make a row the active one, and see it. */
  move(n) {
    if (!this.length) return;
    this.active = Math.max(0, Math.min(n, this.length - 1));
    const seen = this.element.clientHeight, first = this.first(), last = first + seen / this.height - 1;
    if (this.active < first || this.active > last) {
      const wanted = this.active < first ? this.active : this.active - seen / this.height + 1;
      this.element.scrollTop = this.tall <= seen ? 0 : (wanted / (this.length - seen / this.height)) * (this.tall - seen);
    }
    this.onmove(this.active);
    this.soon();
  }

  press(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.move(Math.max(0, Math.min(this.length - 1, this.active + steps[event.key])));
    else if (event.key === "Enter" && this.length) this.onopen(this.active);
    else return;
    event.preventDefault();
  }
}
