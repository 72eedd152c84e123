// Search: passages, their best words marked and shaded by degree.
import { failed, post } from "./api.js";
import { button, count, h, shown } from "./dom.js";
import { Facets } from "./facets.js";
import { Options } from "./options.js";
import { openDocument } from "./reader.js";
import { same } from "./same.js";
import { change, go, link, values } from "./state.js";
import { depth, highlight, placeOf } from "./text.js";
import { saving } from "./download.js";

const MODES = { hybrid: "Meaning and words", dense: "Meaning", lexical: "Words" };
const NAMES = ["sort", "group", "fusion", "weight", "late", "min_degree", "all_lengths", "rescore", "must", "must_not", "literal"];
const NAMED = { liked: "More like", disliked: "Less like" };

/** Return the body of a search that a state is of. */
export function searchBody(parameters, options, prefix = "") {
  const body = { query: parameters.get("query") ?? "", ...options.asked(parameters, prefix) };
  for (const name of ["filters", ...Object.keys(NAMED)]) if (parameters.has(name)) body[name] = parameters.getAll(name);
  const mode = parameters.get(`${prefix}mode`), index = parameters.get(`${prefix}index`) ?? parameters.get("index");
  if (mode) body.mode = mode;
  if (index) body.index = index;
  if (parameters.has("size")) body.size = Number(parameters.get("size"));
  return body;
}

/** Return a hit as an element; `actions`: whether its words can be asked for from here. */
export function shownHit(hit, parameters, actions = true) {
  const [span] = hit.spans;
  const place = { ...placeOf(hit), index: parameters.get("index") };
  const more = (name) => () => change({ [name]: [...parameters.getAll(name), span.text] });
  return h("article", { class: "hit", "aria-label": hit.title || hit.document },
    h("header", {},
      h("span", { class: "degree", style: { "--depth": depth(hit.degree) }, title: `Degree of similarity; score ${hit.score.toFixed(3)}` }, shown(hit.degree)),
      button(hit.title || hit.document, () => openDocument(place), { class: "link" }),
      span?.opposition.length ? h("span", { class: "judged" }, `opposite: ${span.opposition.join(", ")}`) : null),
    h("p", { class: "text", "data-document": hit.document, "data-offset": hit.document_start }, highlight(hit.text, hit.spans)),
    h("footer", { class: "row" },
      h("ul", { class: "chips" }, Object.entries(hit.metadata).filter(([, value]) => typeof value !== "object").slice(0, 6)
        .map(([name, value]) => h("li", {}, h("span", { class: "name" }, name), ` ${value}`))),
      actions && span ? h("span", { class: "actions" },
        button("More like this", more("liked"), { class: "plain", "aria-label": `More like “${span.text}”` }),
        button("Less like this", more("disliked"), { class: "plain", "aria-label": `Less like “${span.text}”` })) : null));
}

/** The view. */
export class Search {
  constructor() {
    this.options = new Options("SearchBody", NAMES);
    this.facets = new Facets((filters) => change({ filters }));
    this.asked = "";
  }

  async load() {
    await this.options.load();
    this.query = h("input", { id: "query", type: "search", placeholder: "the customer wants to cancel", autocomplete: "off", enterkeyhint: "search" });
    this.modes = h("fieldset", { class: "modes" }, h("legend", { class: "hidden" }, "Search by"),
      Object.entries(MODES).map(([value, name]) => h("label", {}, h("input", { type: "radio", name: "mode", value, onchange: () => this.submit() }), h("span", {}, name))));
    this.terms = h("ul", { class: "chips terms" });
    this.note = h("p", { class: "note", role: "status" });
    this.tools = h("div", { class: "tools" });
    this.hits = h("div", { class: "hits" });
    const form = h("form", { role: "search", class: "ask", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h("label", { for: "query", class: "hidden" }, "What is looked for"),
      h("div", { class: "field" }, this.query, h("button", { class: "primary" }, "Search")),
      this.terms, this.modes,
      h("details", { class: "more" }, h("summary", {}, "More options"), this.options.element));
    this.element = h("div", { class: "view search" }, h("h1", { class: "hidden" }, "Search"), form,
      h("div", { class: "columns" }, this.facets.element, h("section", { "aria-label": "Results" }, h("div", { class: "bar-row" }, this.note, this.tools), this.hits)));
  }

  submit() {
    const mode = this.modes.querySelector(":checked")?.value;
    change({ query: this.query.value.trim(), mode: mode === "hybrid" ? undefined : mode, size: undefined, ...this.options.values() });
  }

  show(parameters) {
    this.query.value = parameters.get("query") ?? "";
    for (const radio of this.modes.querySelectorAll("input")) radio.checked = radio.value === (parameters.get("mode") ?? "hybrid");
    this.options.show(parameters);
    this.facets.show(parameters.getAll("filters"), parameters.get("index"));
    this.terms.replaceChildren(...Object.entries(NAMED).flatMap(([name, title]) => parameters.getAll(name).map((text) => h("li", { class: name },
      `${title} “${text}”`, button("×", () => change({ [name]: parameters.getAll(name).filter((one) => one !== text) }), { class: "plain", "aria-label": `Remove ${text}` })))));
    this.run(parameters);
  }

  async run(parameters) {
    const body = searchBody(parameters, this.options);
    const key = JSON.stringify(body);
    if (key === this.asked) return;
    this.asked = key;
    this.running?.abort();
    this.tools.replaceChildren();
    if (!body.query) {
      this.note.textContent = "";
      this.hits.replaceChildren(welcome());
      return;
    }
    this.running = new AbortController();
    this.element.setAttribute("aria-busy", "true");
    const began = performance.now();
    try {
      const answer = await post("api/search", body, this.running.signal);
      this.render(answer, parameters, body, performance.now() - began);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.asked = "";
      this.note.textContent = "";
      this.hits.replaceChildren(failed(error));
    }
    this.element.setAttribute("aria-busy", "false");
  }

  render(answer, parameters, body, milliseconds) {
    const hits = answer.hits ?? answer.documents.flatMap((document) => document.hits);
    const number = answer.hits ? count(hits.length, "passage") : count(answer.documents.length, "document");
    this.note.textContent = hits.length ? `${number} in ${milliseconds.toFixed(0)} ms` : "Nothing was found: try other words, or fewer filters.";
    const shownOf = (some) => some.map((hit) => shownHit(hit, parameters));
    this.hits.replaceChildren(...(answer.hits ? shownOf(hits) : answer.documents.map((document) => h("section", { class: "group" },
      h("h2", {}, document.title || document.document, h("small", {}, ` ${count(document.hits.length, "passage")}`)), shownOf(document.hits)))));
    const size = body.size ?? 10;
    if ((answer.hits ?? answer.documents).length >= size) {
      this.hits.append(button("Show more", () => change({ size: size + 20 }, { replace: true }), { class: "wide" }));
    }
    const rows = hits.map(({ spans, ...hit }) => ({ ...hit, ...placeOf({ ...hit, spans }), words: spans[0]?.text ?? "" }));
    this.tools.replaceChildren(
      h("a", { class: "plain", href: link("mine", { phrases: body.query, filters: body.filters, index: body.index }) }, "Find all of it"),
      saving("hits", () => rows), same("search", () => body));
  }
}

const EXAMPLES = ["the customer wants to cancel", "either party may terminate this agreement", "the girl fell into a deep hole"];

function welcome() {
  return h("div", { class: "welcome" },
    h("p", {}, "Finds the few words that say it, however they say it."),
    h("ul", {}, EXAMPLES.map((query) => h("li", {}, h("a", { href: link("search", { query }), onclick: (event) => {
      event.preventDefault();
      go("search", { ...values(new URLSearchParams(location.hash.split("?")[1])), query });
    } }, query)))));
}
