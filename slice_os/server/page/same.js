// The same for other programs: curl, the command line, Python.
import { button, h } from "./dom.js";

const FLAGS = { filters: "--filter", size: "--size", phrases: "--phrase" }; // as the command line calls them, where not as here
const SAFE = /^[\w@%+=:,./-]+$/;

/** Return a text as a shell takes it. */
export const quoted = (text) => (SAFE.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);

/** Return a value as Python writes it. */
export function python(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${python(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value).replace(/\u2028|\u2029/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`);
}

function curl(verb, body) {
  return `curl -H 'Content-Type: application/json' ${quoted(new URL(`api/${verb}`, location.href).href)} \\\n  -d ${quoted(JSON.stringify(body))}`;
}

const list = (value) => (Array.isArray(value) ? value : [value]);

function command(verb, body) {
  const { index, query, phrases = [], counter_examples: not = {}, taught = [], ...others } = body;
  const words = ["slice-os", verb];
  if (verb === "search") words.push(...(query.startsWith("-") ? ["--"] : []), quoted(query));
  const named = !Array.isArray(phrases);
  if (named) words.push("phrases.csv");
  else for (const phrase of phrases) words.push("--phrase", quoted(phrase));
  if (!named) for (const [name, some] of Object.entries(not)) for (const one of some) words.push("--not", quoted(`${name}=${one}`));
  for (const name of taught) words.push(`WORKSPACE/${quoted(name)}.json`);
  words.push("--index", index ? quoted(index) : '"$SLICE_OS_INDEX"');
  for (const [name, value] of Object.entries(others)) {
    const flag = FLAGS[name] ?? `--${name.replaceAll("_", "-")}`;
    if (value === true) words.push(flag);
    else if (value === false) words.push(flag.replace("--", "--no-"));
    else for (const one of list(value)) words.push(flag, quoted(String(one)));
  }
  return words.join(" ");
}

function program(verb, body) {
  const { index, query, phrases, taught, ...others } = body;
  const place = index ? python(index) : "location";
  const options = Object.entries(others).map(([name, value]) => `, ${name}=${python(value)}`).join("");
  const first = verb === "search" ? python(query)
    : taught ? `{${taught.map((name) => `${python(name)}: read_taught(${python(`${name}.json`)})`).join(", ")}${phrases ? `, **${python(Array.isArray(phrases) ? Object.fromEntries(phrases.map((one) => [one, one])) : phrases)}` : ""}}` : python(phrases);
  const loop = verb === "search" ? "for hit in index.search" : "for match in index.mine";
  return `import slice_os\n${taught ? "from slice_os.teaching.record import read_taught\n" : ""}\nwith slice_os.open(${place}) as index:\n    ${loop}(${first}${options}):\n        print(${verb === "search" ? "hit.degree, hit.text" : "match.degree, match.text"})`;
}

/** Return a disclosure that says a request as other programs make it. */
export function same(verb, body) {
  const inside = h("div", { class: "same-inside" });
  const one = (title, text) => h("section", {}, h("div", { class: "bar-row" }, h("h3", {}, title), button("Copy", (event) => {
    navigator.clipboard.writeText(text).then(() => { event.target.textContent = "Copied"; });
  }, { class: "plain" })), h("pre", { tabindex: 0 }, text));
  return h("details", { class: "same", ontoggle: (event) => {
    if (!event.target.open || inside.childElementCount) return;
    inside.append(one("curl", curl(verb, body)), one("Command line", command(verb, body)), one("Python", program(verb, body)));
  } }, h("summary", {}, "The same as …"), inside);
}
