// Two settings of one search side by side: what differs most comes first.
import { failed, post } from "./api.js";
import { count, h, shown } from "./dom.js";
import { Options } from "./options.js";
import { openDocument } from "./reader.js";
import { change } from "./state.js";
import { highlight, placeOf } from "./text.js";

const NAMES = ["mode", "fusion", "weight", "late", "rescore", "all_lengths"];
const SIDES = ["a", "b"];
const SIZE = 20;

/** Return the passages of two lists of hits with both ranks, those whose ranks differ most first. */
export function compared(first, second) {
  const rows = new Map();
  for (const [side, hits] of [first, second].entries()) {
    for (const [rank, hit] of hits.entries()) {
      const key = `${hit.document}\n${hit.passage}`;
      const row = rows.get(key) ?? { hits: [], ranks: [] };
      row.hits[side] = hit;
      row.ranks[side] = rank + 1;
      rows.set(key, row);
    }
  }
  const apart = ({ ranks: [a = SIZE + 1, b = SIZE + 1] }) => Math.abs(a - b);
  const best = ({ ranks: [a = Infinity, b = Infinity] }) => Math.min(a, b);
  return [...rows.values()].sort((one, other) => apart(other) - apart(one) || best(one) - best(other));
}

/** The view. */
export class Compare {
  constructor() {
    this.options = SIDES.map(() => new Options("SearchBody", NAMES));
    this.asked = "";
  }

  async load(server) {
    for (const options of this.options) await options.load();
    this.query = h("input", { id: "compare-query", type: "search", placeholder: "the customer wants to cancel", autocomplete: "off" });
    this.indexes = SIDES.map((side) => h("select", { id: `index-${side}` }, server.indexes.map((name, n) => h("option", { value: n ? name : "" }, name))));
    const chosen = SIDES.map((side, n) => h("details", { class: "more" }, h("summary", {}, `Setting ${side.toUpperCase()}`),
      server.indexes.length > 1 ? h("p", { class: "row" }, h("label", { for: `index-${side}` }, "Index"), this.indexes[n]) : null, this.options[n].element));
    this.form = h("form", { role: "search", class: "ask", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h("label", { for: "compare-query", class: "hidden" }, "What is looked for"),
      h("div", { class: "field" }, this.query, h("button", { class: "primary" }, "Compare")), chosen);
    this.note = h("p", { class: "note", role: "status" });
    this.rows = h("div", { class: "hits" });
    this.element = h("div", { class: "view compare" }, h("h1", { class: "hidden" }, "Compare"), this.form, this.note, this.rows);
  }

  submit() {
    const indexes = Object.fromEntries(SIDES.map((side, n) => [`${side}_index`, this.indexes[n].value || undefined]));
    change({ query: this.query.value.trim(), ...indexes, ...this.options[0].values(), ...this.options[1].values() });
  }

  show(parameters) {
    this.query.value = parameters.get("query") ?? "";
    SIDES.forEach((side, n) => {
      this.options[n].show(parameters, `${side}_`);
      this.indexes[n].value = parameters.get(`${side}_index`) ?? "";
    });
    this.run(parameters);
  }

  async run(parameters) {
    const query = parameters.get("query");
    const bodies = SIDES.map((side, n) => {
      const index = parameters.get(`${side}_index`) ?? parameters.get("index");
      return { query, size: SIZE, ...this.options[n].asked(parameters, `${side}_`), ...(index ? { index } : {}) };
    });
    const key = JSON.stringify(bodies);
    if (!query || key === this.asked) return;
    this.asked = key;
    this.running?.abort();
    this.running = new AbortController();
    this.element.setAttribute("aria-busy", "true");
    try {
      const [first, second] = await Promise.all(bodies.map((body) => post("api/search", body, this.running.signal)));
      this.render(compared(first.hits, second.hits), bodies);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.asked = "";
      this.rows.replaceChildren(failed(error));
    }
    this.element.setAttribute("aria-busy", "false");
  }

  render(rows, bodies) {
    const both = rows.filter(({ hits: [a, b] }) => a && b).length;
    this.note.textContent = `${count(both, "passage")} of ${rows.length} in both lists of ${SIZE}`;
    this.rows.replaceChildren(...rows.map((row) => this.row(row, bodies)));
  }

  row({ hits, ranks }, bodies) {
    const side = (n) => {
      const hit = hits[n];
      if (!hit) return h("p", { class: "side hint" }, `${SIDES[n].toUpperCase()}: not among the first ${SIZE}`);
      return h("div", { class: "side" },
        h("p", { class: "hint" }, `${SIDES[n].toUpperCase()}: rank ${ranks[n]}, degree ${shown(hit.degree)}`),
        h("p", { class: "text" }, highlight(hit.text, hit.spans)),
        h("button", { type: "button", class: "link", onclick: () => openDocument({ ...placeOf(hit), index: bodies[n].index }) }, "Open"));
    };
    const hit = hits[0] ?? hits[1];
    return h("article", { class: "hit", "aria-label": hit.document }, h("header", {}, hit.title || hit.document), h("div", { class: "sides" }, side(0), side(1)));
  }
}
