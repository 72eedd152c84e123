// Fields for the options of a request, made of their description in /openapi.json.
import { schema } from "./api.js";
import { h } from "./dom.js";

const LISTS = "array";
const label = (name) => name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());

/** Return an option's plain schema: of one that may be null, what else it may be. */
function plain(told) {
  const other = told.anyOf?.find((part) => part.type !== "null");
  return { ...told, ...other };
}

function field(name, told, value, id) {
  const described = { id, name, "aria-describedby": `${id}-help` };
  if (told.enum) {
    const names = told.default === null ? ["", ...told.enum] : told.enum;
    return h("select", described, names.map((one) => h("option", { value: one, selected: one === (value ?? told.default ?? "") }, one || "–")));
  }
  if (told.type === "boolean") return h("input", { ...described, type: "checkbox", checked: (value ?? String(told.default)) === "true" });
  if (told.type === "number" || told.type === "integer") {
    return h("input", { ...described, type: "number", min: told.minimum ?? told.exclusiveMinimum, max: told.maximum ?? told.exclusiveMaximum,
      step: told.type === "integer" ? 1 : "any", placeholder: told.default ?? "", value: value ?? "" });
  }
  if (told.type === LISTS) return h("textarea", { ...described, rows: 2, placeholder: "one a line", value: [value ?? []].flat().join("\n") });
  return h("input", { ...described, type: "text", value: value ?? "" });
}

/** Fields of some options of a body, as parameters of a state. */
export class Options {
  /** `body` names the schema, `names` its options in the order in which they are shown. */
  constructor(body, names) {
    this.body = body;
    this.names = names;
    this.element = h("div", { class: "options" });
    this.schema = {};
  }

  /** Read the description; to be awaited before anything else. */
  async load() {
    const all = await schema(this.body);
    this.schema = Object.fromEntries(this.names.map((name) => [name, plain(all[name])]));
  }

  /** Show the fields with the values of a state. */
  show(parameters, prefix = "") {
    this.prefix = prefix;
    this.element.replaceChildren(...this.names.map((name) => {
      const told = this.schema[name];
      const id = `${this.body}-${prefix}${name}`;
      const all = parameters.getAll(prefix + name);
      const input = field(name, told, told.type === LISTS ? all : all[0], id);
      return h("div", { class: told.type === "boolean" ? "option check" : "option" },
        h("label", { for: id }, label(name)), input, h("small", { id: `${id}-help` }, told.description));
    }));
  }

  /** Return what differs from the defaults, as values of a state; undefined for all else. */
  values() {
    return Object.fromEntries(this.names.map((name) => {
      const told = this.schema[name];
      const input = this.element.querySelector(`[name="${name}"]`);
      let value = told.type === "boolean" ? input.checked : input.value.trim();
      if (told.type === LISTS) value = value.split("\n").map((line) => line.trim()).filter(Boolean);
      return [this.prefix + name, String(value) === String(told.default ?? "") ? undefined : String(value) === "" ? undefined : value];
    }));
  }

  /** Return the options of a state as fields of a body. */
  asked(parameters, prefix = "") {
    const body = {};
    for (const name of this.names) {
      const all = parameters.getAll(prefix + name);
      if (!all.length) continue;
      const { type } = this.schema[name];
      if (type === LISTS) body[name] = all;
      else if (type === "boolean") body[name] = all[0] === "true";
      else body[name] = type === "number" || type === "integer" ? Number(all[0]) : all[0];
    }
    return body;
  }
}
