// Filters by metadata: what the first documents of an index have, and how many have it.
import { failed, get } from "./api.js";
import { button, count, h } from "./dom.js";

const READ = 1000;
const VALUES = 8;
const FIELDS = 12;

/** Yield the names and values of metadata, nested names joined by points, the members of lists apart. */
function* leaves(metadata, prefix = "") {
  for (const [name, value] of Object.entries(metadata ?? {})) {
    for (const member of Array.isArray(value) ? value : [value]) {
      if (member === null) continue;
      if (typeof member === "object") yield* leaves(member, `${prefix}${name}.`);
      else yield [prefix + name, member];
    }
  }
}

/** Return the fields of some documents: values with their numbers, the most frequent first, or a range. */
export function fieldsOf(documents) {
  const fields = new Map();
  for (const { metadata } of documents) {
    const own = new Map();
    for (const [name, value] of leaves(metadata)) own.set(name, (own.get(name) ?? new Set()).add(value));
    for (const [name, some] of own) {
      const counts = fields.get(name) ?? new Map();
      for (const value of some) counts.set(value, (counts.get(value) ?? 0) + 1);
      fields.set(name, counts);
    }
  }
  return [...fields].map(([name, counts]) => {
    const all = [...counts].sort((a, b) => b[1] - a[1]);
    const numbers = all.map(([value]) => value);
    const isRange = all.length > VALUES && numbers.every((value) => typeof value === "number");
    const isKey = all.length > 1 && all[Math.floor(all.length / 2)][1] === 1; // most values are of one document
    return { name, values: all, isKey, range: isRange ? [Math.min(...numbers), Math.max(...numbers)] : null };
  }).filter((field) => field.range || !field.isKey).slice(0, FIELDS);
}

/** Return the filter that a field has one of some values; commas part values, so those with one are written out. */
export function anyOf(name, some) {
  if (some.length > 1 && some.every((value) => !value.includes(","))) return `${name} in ${some.join(",")}`;
  return some.map((value) => `${name}=${value}`).join(" or ");
}

/** Return the values that filters ask a field to have one of. */
export function asked(name, filters) {
  for (const filter of filters) {
    if (filter.startsWith(`${name} in `)) return filter.slice(name.length + 4).split(",");
    if (filter.startsWith(`${name}=`)) return filter.slice(name.length + 1).split(` or ${name}=`);
  }
  return [];
}

const isOf = (name) => (filter) => [" in ", "=", ">=", "<="].some((operator) => filter.startsWith(name + operator));

const known = new Map();

/** Filters, with what they may be; `onchange` is told the new list of them. */
export class Facets {
  constructor(onchange) {
    this.onchange = onchange;
    this.filters = [];
    this.element = h("details", { class: "facets" }, h("summary", {}, "Filters"));
    this.inside = h("div", { class: "facets-inside" });
    this.element.append(this.inside);
    this.element.open = matchMedia("(min-width: 60rem)").matches;
    this.element.addEventListener("toggle", () => this.element.open && this.load());
    this.index = null;
  }

  /** Show the filters of a state, for an index. */
  show(filters, index) {
    this.filters = filters;
    this.index = index;
    this.element.querySelector("summary").textContent = filters.length ? `Filters (${filters.length})` : "Filters";
    if (this.element.open) this.load();
  }

  async load() {
    const { index } = this;
    if (!known.has(index)) {
      const path = `api/documents?size=${READ}${index ? `&index=${encodeURIComponent(index)}` : ""}`;
      known.set(index, get(path).then(({ documents, more }) => ({ fields: fieldsOf(documents), more })));
    }
    try {
      const { fields, more } = await known.get(index);
      if (index === this.index) this.render(fields, more);
    } catch (error) {
      known.delete(index);
      this.inside.replaceChildren(failed(error));
    }
  }

  replaced(name, added) {
    this.onchange([...this.filters.filter((filter) => !isOf(name)(filter)), ...added]);
  }

  render(fields, more) {
    const others = this.filters.filter((filter) => !fields.some((field) => isOf(field.name)(filter)));
    const text = h("input", { id: "filter-text", type: "text", placeholder: "year>=2020" });
    this.inside.replaceChildren(
      ...fields.map((field) => this.field(field)),
      h("form", { class: "facet", onsubmit: (event) => {
        event.preventDefault();
        if (text.value.trim()) this.onchange([...this.filters, text.value.trim()]);
      } },
      h("label", { for: "filter-text" }, fields.length ? "Another filter" : "A filter of metadata"), text,
      h("ul", { class: "chips" }, others.map((filter) => h("li", {}, filter,
        button("×", () => this.onchange(this.filters.filter((one) => one !== filter)), { class: "plain", "aria-label": `Remove ${filter}` }))))),
      ...(more ? [h("p", { class: "hint" }, `As in the first ${count(READ, "document")}.`)] : []));
  }

  field({ name, values, range }) {
    if (range) {
      const [least, most] = [">=", "<="].map((operator) => this.filters.find((one) => one.startsWith(name + operator))?.slice(name.length + 2) ?? "");
      const input = (text, value, placeholder) => h("input", { type: "number", step: "any", "aria-label": `${name} ${text}`, placeholder, value, onchange });
      const from = input("from", least, range[0]), to = input("to", most, range[1]);
      function onchange() {
        self.replaced(name, [from.value && `${name}>=${from.value}`, to.value && `${name}<=${to.value}`].filter(Boolean));
      }
      const self = this;
      return h("fieldset", { class: "facet" }, h("legend", {}, name), h("span", { class: "row" }, from, "to", to));
    }
    const chosen = new Set(asked(name, this.filters));
    const names = values.map(([value, number]) => [String(value), number]);
    const listed = [...names.filter(([value], n) => n < VALUES || chosen.has(value))];
    return h("fieldset", { class: "facet" }, h("legend", {}, name), listed.map(([value, number]) => h("label", { class: "value" },
      h("input", { type: "checkbox", checked: chosen.has(value), onchange: (event) => {
        event.target.checked ? chosen.add(value) : chosen.delete(value);
        this.replaced(name, chosen.size ? [anyOf(name, [...chosen])] : []);
      } }), h("span", { class: "name" }, value), h("span", { class: "number" }, number.toLocaleString("en")))));
  }
}
