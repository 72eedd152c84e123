// Mining: matches stream in once, and the threshold moves over them here.
import { failed, lines } from "./api.js";
import { button, count, h, seldom, shown } from "./dom.js";
import { saving } from "./download.js";
import { Facets } from "./facets.js";
import { List } from "./list.js";
import { Matches, stepOf } from "./matches.js";
import { Options } from "./options.js";
import { parse, shortest } from "./phrases.js";
import { openDocument } from "./reader.js";
import { same } from "./same.js";
import { Slider } from "./slider.js";
import { change, note, read } from "./state.js";
import { depth } from "./text.js";

const NAMES = ["rescore", "all_lengths", "per_document", "top", "must", "must_not", "literal", "graph"];
const NUMBERS = { degree: { label: "Degree of at least", start: 0.8, from: 0.75 }, probability: { label: "Probability of at least", start: 0.5, from: 0.05 } };
const SHOWN_NAMES = 200;

/** Return counter-examples by name of a state: NAME=TEXT, as the command line takes them. */
function counterExamples(parameters, phrases) {
  const some = {};
  for (const text of parameters.getAll("not")) {
    const name = Object.keys(phrases).find((one) => text.startsWith(`${one}=`));
    if (name) (some[name] ??= []).push(text.slice(name.length + 1));
  }
  return some;
}

/** Return the body of a mining that a state is of; its thresholds are where the sliders begin. */
export function mineBody(parameters, options) {
  const { phrases, counterExamples: written, taught } = parse(parameters.get("phrases") ?? "");
  const body = { ...options.asked(parameters), min_degree: Number(parameters.get("from") ?? NUMBERS.degree.from) };
  if (Object.keys(phrases).length) body.phrases = shortest(phrases);
  if (taught.length) Object.assign(body, { taught, min_probability: NUMBERS.probability.from });
  const not = counterExamples(parameters, phrases);
  for (const [name, some] of Object.entries(written)) if (name in phrases) not[name] = [...new Set([...some, ...not[name] ?? []])];
  if (Object.keys(not).length) body.counter_examples = not;
  if (parameters.has("filters")) body.filters = parameters.getAll("filters");
  if (parameters.get("index")) body.index = parameters.get("index");
  return body;
}

/** The view. */
export class Mine {
  constructor() {
    this.options = new Options("MineBody", NAMES);
    this.facets = new Facets((filters) => change({ filters }));
    this.asked = "";
    this.clear();
  }

  async load(server) {
    this.most = server.limits.max_phrases;
    await this.options.load();
    this.phrases = h("textarea", { id: "phrases", rows: 4, spellcheck: true, placeholder: "the customer wants to cancel\nthe bill is too high", "aria-describedby": "phrases-help" });
    this.from = h("input", { id: "from", type: "number", min: 0, max: 1, step: 0.005 });
    this.terms = h("ul", { class: "chips terms" });
    const file = h("input", { id: "phrases-file", type: "file", accept: ".txt,.csv,text/*", class: "hidden", onchange: () => file.files[0] && this.take(file.files[0]) });
    this.start = h("button", { class: "primary" }, "Mine");
    this.stop = button("Stop", () => this.running?.abort(), { hidden: true });
    this.form = h("form", { class: "ask", onsubmit: (event) => { event.preventDefault(); this.submit(); },
      ondragover: (event) => { event.preventDefault(); this.form.classList.add("dropping"); },
      ondragleave: () => this.form.classList.remove("dropping"),
      ondrop: (event) => {
        event.preventDefault();
        this.form.classList.remove("dropping");
        const [dropped] = event.dataTransfer.files;
        if (dropped) this.take(dropped);
      } },
    h("label", { for: "phrases", class: "big" }, "What is said, one phrase a line"), this.phrases,
    h("p", { class: "hint", id: "phrases-help" }, "Or drop a file here, also a .csv with the columns name and phrase. @NAME is a taught phrase. ", h("label", { for: "phrases-file", class: "link" }, "Choose a file"), file),
    this.terms,
    h("div", { class: "row" }, this.start, this.stop, h("span", { class: "inline" }, h("label", { for: "from" }, "from the degree"), this.from)),
    h("details", { class: "more" }, h("summary", {}, "More options"), this.options.element));
    this.note = h("p", { class: "note", role: "status" });
    this.progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "How much is read" });
    this.tools = h("div", { class: "tools" });
    this.problem = h("div", {});
    this.sliders = Object.fromEntries(Object.entries(NUMBERS).map(([number, { label }]) => [number, new Slider({ label, oninput: () => this.slide() })]));
    this.names = h("div", { class: "names", role: "group", "aria-label": "Phrases" });
    this.list = new List({ label: "Matches", render: (n) => this.row(n), onopen: (n) => this.open(n) });
    this.results = h("div", { class: "mined", hidden: true },
      h("div", { class: "panel" }, Object.values(this.sliders).map((slider) => slider.element)),
      h("div", { class: "bar-row" }, this.note, this.tools), this.progress,
      h("div", { class: "found" }, this.names, this.list.element));
    this.element = h("div", { class: "view mine" }, h("h1", { class: "hidden" }, "Mine"), h("div", { class: "columns" }, this.facets.element, h("div", {}, this.form, this.problem, this.results)));
    this.redraw = seldom(150, () => this.draw());
  }

  async take(file) {
    const text = await file.text();
    this.phrases.value = text.replaceAll("\r\n", "\n").trimEnd();
    this.submit();
  }

  submit() {
    const from = this.from.value === "" ? undefined : Number(this.from.value);
    const kept = Math.max(Number(read().parameters.get("degree") ?? NUMBERS.degree.start), from ?? 0);
    change({ phrases: this.phrases.value.trim(), from: from === NUMBERS.degree.from ? undefined : from, degree: kept === NUMBERS.degree.start ? undefined : kept, name: undefined, ...this.options.values() });
  }

  show(parameters) {
    this.parameters = parameters;
    this.phrases.value = parameters.get("phrases") ?? "";
    this.from.value = parameters.get("from") ?? NUMBERS.degree.from;
    this.options.show(parameters);
    this.facets.show(parameters.getAll("filters"), parameters.get("index"));
    this.terms.replaceChildren(...parameters.getAll("not").map((text) => h("li", { class: "disliked" }, `not ${text}`,
      button("×", () => change({ not: parameters.getAll("not").filter((one) => one !== text) }), { class: "plain", "aria-label": `Remove ${text}` }))));
    this.name = parameters.get("name") ?? undefined;
    const body = mineBody(parameters, this.options);
    for (const [number, { start }] of Object.entries(NUMBERS)) {
      const least = number === "degree" ? body.min_degree : NUMBERS.probability.from;
      this.sliders[number].set(Math.max(least, Number(parameters.get(number) ?? start)), least);
    }
    this.run(body);
  }

  clear() {
    this.matches = { degree: new Matches("degree"), probability: new Matches("probability") };
    this.share = 0;
  }

  async run(body) {
    const key = JSON.stringify(body);
    if (key === this.asked) {
      this.draw({ reset: true });
      return;
    }
    this.asked = key;
    this.running?.abort();
    this.clear();
    this.body = body;
    this.problem.replaceChildren();
    this.results.hidden = !body.phrases && !body.taught;
    if (this.results.hidden) return;
    for (const name of Array.isArray(body.phrases) ? body.phrases : Object.keys(body.phrases ?? {})) this.matches.degree.know(name);
    for (const name of body.taught ?? []) this.matches.probability.know(name);
    const running = this.running = new AbortController();
    this.state("running");
    this.draw({ reset: true });
    try {
      for await (const some of lines("api/mine", { ...body, progress: true }, running.signal)) {
        if (running !== this.running) return;
        for (const line of some) this.takeLine(line);
        this.redraw();
      }
    } catch (error) {
      if (running !== this.running) return;
      this.asked = "";
      if (error.name === "AbortError") this.state("stopped");
      else this.fail(error);
    }
    if (running === this.running && this.status === "running") this.fail({ message: "The connection was cut, and so what is shown is not all.", hint: "Mine again." });
    this.draw();
  }

  takeLine(line) {
    if (line.document !== undefined) this.matches[line.probability === null ? "degree" : "probability"].add(line);
    else if (line.progress !== undefined) this.share = line.progress;
    else {
      this.state(line.done ? "done" : "failed");
      if (line.error) this.fail({ message: line.error, hint: line.hint });
      if (line.unknown?.length) this.problem.append(h("p", { class: "failure", role: "alert" }, `The encoder knows no word of ${line.unknown.map((text) => `“${text}”`).join(", ")}: left out.`));
    }
  }

  fail(error) {
    this.state("failed");
    this.problem.append(failed(error));
  }

  state(status) {
    this.status = status;
    this.stop.hidden = this.progress.hidden = status !== "running";
    this.element.setAttribute("aria-busy", String(status === "running"));
  }

  /** The slider has moved: nothing is asked, what is here is counted. */
  slide() {
    this.draw();
    this.noted ??= seldom(300, () => note(Object.fromEntries(Object.entries(NUMBERS).map(([number, { start }]) => {
      const { threshold } = this.sliders[number];
      return [number, stepOf(threshold) === stepOf(start) ? undefined : threshold];
    }))));
    this.noted();
  }

  /** The numbers that there are matches of, or may be. */
  get numbers() {
    return Object.keys(NUMBERS).filter((number) => this.matches[number].names.size);
  }

  draw({ reset = false } = {}) {
    let visible = 0, total = 0;
    this.parts = [];
    for (const [number, slider] of Object.entries(this.sliders)) {
      const some = this.matches[number], isOf = this.name === undefined || some.names.has(this.name);
      slider.element.hidden = !some.names.size || !isOf;
      if (slider.element.hidden) continue;
      slider.fill(some.histogram(this.name));
      const size = some.count(slider.threshold, this.name);
      this.parts.push({ some, order: some.order(this.name), size });
      visible += size;
      total += some.rows.length;
    }
    const state = { running: `, ${Math.round(100 * this.share)} % read`, stopped: ", stopped before the end", failed: ", not all" }[this.status] ?? "";
    this.note.textContent = `${count(visible, "match", "matches")}${state}`;
    this.progress.value = this.share;
    this.list.show(visible, { reset });
    this.drawNames();
    this.drawTools();
  }

  drawNames() {
    const counts = this.numbers.flatMap((number) => [...this.matches[number].names.keys()].map((name) => [name, this.matches[number].count(this.sliders[number].threshold, name), number]));
    if (this.names.childElementCount !== Math.min(counts.length, SHOWN_NAMES) + 1 || this.drawn !== this.asked) {
      this.drawn = this.asked;
      const choose = (name) => button("", () => change({ name }, { replace: true }), { class: "name-row" });
      this.names.replaceChildren(choose(undefined), ...counts.slice(0, SHOWN_NAMES).map(([name]) => choose(name)));
      for (const [n, row] of [...this.names.children].entries()) {
        row.append(h("span", { class: "name" }, n ? `${counts[n - 1][2] === "probability" ? "@" : ""}${counts[n - 1][0]}` : "All phrases"), h("span", { class: "number" }));
      }
    }
    const sum = counts.reduce((all, [, number]) => all + number, 0);
    for (const [n, row] of [...this.names.children].entries()) {
      row.lastChild.textContent = (n ? counts[n - 1][1] : sum).toLocaleString("en");
      row.setAttribute("aria-pressed", String(n ? counts[n - 1][0] === this.name : this.name === undefined));
    }
  }

  drawTools() {
    const body = { ...this.body, ...Object.fromEntries(this.numbers.map((number) => [`min_${number}`, this.sliders[number].threshold])) };
    if (!this.numbers.includes("degree")) delete body.min_degree;
    if (JSON.stringify(body) === this.tooled) return;
    this.tooled = JSON.stringify(body);
    this.told = body;
    if (this.tools.childElementCount && !this.tools.querySelector("pre")) return; // nothing is open that is of the former
    this.tools.replaceChildren(saving("matches", () => this.visible()), same("mine", () => this.told));
  }

  /** Return the matches that are shown, best first. */
  visible() {
    return this.parts.flatMap(({ some, order, size }) => Array.from(order.subarray(0, size), (n) => some.rows[n]));
  }

  /** Return a match that is shown, by its place. */
  at(n) {
    for (const { some, order, size } of this.parts) {
      if (n < size) return some.rows[order[n]];
      n -= size;
    }
    return undefined;
  }

  row(n) {
    const match = this.at(n);
    if (!match) return "";
    const number = match.probability ?? match.degree;
    return [h("span", { class: "degree", style: { "--depth": depth(number) } }, shown(number)),
      h("span", { class: "text" }, h("mark", { style: { "--depth": depth(number) } }, match.text)),
      h("span", { class: "of" }, this.name === undefined ? match.name : "", h("span", { class: "document" }, ` ${match.document}`))];
  }

  open(n) {
    const match = this.at(n);
    if (match) openDocument({ document: match.document, start: match.document_start, end: match.document_end, index: this.parameters.get("index") });
  }
}
