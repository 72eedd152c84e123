// Teaching: a question at a time, yes or no by key; what is learnt after every few answers.
import { failed, post } from "./api.js";
import { button, count, h, shown, svg } from "./dom.js";
import { openDocument } from "./reader.js";
import { change, link } from "./state.js";

const ROUND = 4;
const WANTED = 0.9;
const KEYS = { y: "yes", n: "no", s: "skip", b: "back" };

const percent = (share) => `${Math.round(100 * share)} %`;
const between = ([low, high]) => `${percent(low)} to ${percent(high)}`;
const placeOf = ({ document, start, end }) => `${document}\n${start}\n${end}`;

/** Return the least probability at which matches are right as often as is wanted; null if none is. */
export function proposed(curve, wanted) {
  return curve.find(({ estimate }) => estimate.precision >= wanted)?.estimate.probability ?? null;
}

/** The answers of a phrase, kept in this browser until it is taught or begun anew. */
class Answers {
  constructor(index, phrases) {
    this.key = `slice-os-labels ${index ?? ""} ${phrases.join("\n")}`;
    this.given = JSON.parse(localStorage.getItem(this.key) ?? "[]");
  }

  /** The labels that a request brings. */
  get labels() {
    return this.given.filter(({ right }) => right !== null);
  }

  has(question) {
    return this.given.some((answer) => placeOf(answer) === placeOf(question));
  }

  add({ document, start, end, text, before, after }, right) {
    this.given.push({ document, start, end, text, before, after, right });
    this.keep();
  }

  back() {
    const last = this.given.pop();
    this.keep();
    return last;
  }

  clear() {
    this.given = [];
    this.keep();
  }

  keep() {
    localStorage.setItem(this.key, JSON.stringify(this.given));
  }
}

/** The view. */
export class Teach {
  async load(server) {
    this.kept = server.workspace;
    this.phrases = h("textarea", { id: "teach-phrases", rows: 2, placeholder: "the customer wants to cancel", "aria-describedby": "teach-help" });
    this.form = h("form", { class: "ask", onsubmit: (event) => {
      event.preventDefault();
      change({ phrases: this.phrases.value.trim() || undefined });
    } },
    h("label", { for: "teach-phrases", class: "big" }, "What is looked for"), this.phrases,
    h("p", { class: "hint", id: "teach-help" }, "One phrase, or several a line that say the same. Some twenty answers make its matches have a probability."),
    h("div", { class: "row" }, h("button", { class: "primary" }, "Teach")));
    this.problem = h("div", {});
    this.question = h("div", { class: "panel question", tabindex: -1, "aria-live": "polite" });
    this.told = h("p", { role: "status" });
    this.curve = h("div", {});
    this.saving = h("div", {});
    this.wanted = h("input", { id: "wanted", type: "range", min: 0.5, max: 0.99, step: 0.01, value: WANTED, oninput: () => this.drawLearnt() });
    this.share = h("output", { for: "wanted" });
    this.aim = h("p", { class: "row" }, h("label", { for: "wanted" }, "Matches that should be right: ", this.share), this.wanted);
    this.learnt = h("div", { class: "panel learnt" }, this.told, this.curve, this.aim, this.saving);
    this.work = h("div", { hidden: true }, this.question, this.learnt);
    this.element = h("div", { class: "view teach" }, h("h1", { class: "hidden" }, "Teach"), this.form, this.problem, this.work);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  show(parameters) {
    const text = parameters.get("phrases") ?? "";
    this.phrases.value = text;
    this.index = parameters.get("index") ?? undefined;
    const phrases = text.split("\n").map((line) => line.trim()).filter(Boolean);
    const asked = JSON.stringify([phrases, this.index]);
    this.work.hidden = !phrases.length;
    if (!phrases.length || asked === this.asked) return;
    this.asked = asked;
    this.wanted.value = WANTED;
    this.saved = null;
    this.taught = { curve: [], estimate: null };
    this.answers = new Answers(this.index, phrases);
    this.said = phrases;
    this.queue = [];
    this.learn();
  }

  body(more = {}) {
    const labels = this.answers.labels.map(({ document, start, end, text, right }) => ({ document, start, end, text, right }));
    const skipped = this.answers.given.length - labels.length;
    return { phrases: this.said, labels, ask: Math.min(ROUND + 2 + skipped, 50), ...(this.index ? { index: this.index } : {}), ...more };
  }

  /** Send all answers; what comes back are estimates and what to ask next. */
  async learn(more) {
    this.running?.abort();
    const running = this.running = new AbortController();
    this.question.setAttribute("aria-busy", "true");
    try {
      const taught = await post("api/teach", this.body(more), running.signal);
      this.problem.replaceChildren();
      this.taught = taught;
      this.queue = taught.questions.filter((question) => !this.answers.has(question));
      if (taught.saved) this.saved = taught.saved;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.problem.replaceChildren(failed(error));
    }
    this.question.removeAttribute("aria-busy");
    this.draw();
  }

  answer(right) {
    const asked = this.queue.shift();
    if (!asked) return;
    this.answers.add(asked, right);
    const rounds = this.answers.given.length % ROUND === 0;
    this.draw();
    if (rounds || !this.queue.length) this.learn();
  }

  back() {
    const last = this.answers.back();
    if (!last) return;
    this.queue.unshift(last);
    this.draw();
  }

  key(event) {
    const key = KEYS[event.key.toLowerCase()];
    const typing = ["TEXTAREA", "INPUT", "SELECT"].includes(event.target.tagName);
    if (!key || typing || event.ctrlKey || event.metaKey || event.altKey || !this.element.isConnected || this.work.hidden) return;
    event.preventDefault();
    if (key === "back") this.back();
    else this.answer({ yes: true, no: false, skip: null }[key]);
  }

  draw() {
    this.drawQuestion();
    this.drawLearnt();
  }

  drawQuestion() {
    const [asked] = this.queue;
    const labels = this.answers.labels;
    const yes = labels.filter(({ right }) => right).length;
    const so = h("p", { class: "note" }, labels.length ? `${count(labels.length, "answer")}: ${yes} yes, ${labels.length - yes} no` : "Does this say it?");
    const choice = (label, key, act, attributes = {}) => button([label, " ", h("kbd", { "aria-hidden": "true" }, key)], act, { "aria-keyshortcuts": key, disabled: !asked, ...attributes });
    this.question.replaceChildren(so,
      asked
        ? h("p", { class: "text asked" }, asked.before, h("mark", { style: { "--depth": 1 } }, asked.text), asked.after)
        : h("p", { class: "text" }, "Nothing is left to ask."),
      asked ? button(asked.document, () => openDocument({ document: asked.document, start: asked.start, end: asked.end, index: this.index }), { class: "link" }) : h("span", {}),
      h("div", { class: "row" },
        choice("Yes", "y", () => this.answer(true), { class: "primary" }), choice("No", "n", () => this.answer(false)),
        choice("Skip", "s", () => this.answer(null)),
        choice("Back", "b", () => this.back(), { class: "plain", disabled: !this.answers.given.length })));
  }

  drawLearnt() {
    const { estimate, curve } = this.taught;
    const wanted = Number(this.wanted.value);
    this.share.textContent = percent(wanted);
    this.aim.hidden = !estimate;
    if (!estimate) {
      this.told.textContent = "After some answers: how many matches are right, how many of all are found, and from which probability.";
      this.curve.replaceChildren();
      this.saving.replaceChildren();
      return;
    }
    const at = proposed(curve, wanted);
    const best = curve.find((point) => point.estimate.probability === at)?.estimate ?? estimate;
    const from = at === null ? `No probability makes ${percent(wanted)} of the matches right yet. From ${shown(best.probability, 2)} ` : `From a probability of ${shown(at, 2)} `;
    this.told.replaceChildren(from,
      h("strong", {}, percent(best.precision)), ` of the matches are right (${between(best.precision_interval)}), and `,
      h("strong", {}, percent(best.recall)), ` of all are found (${between(best.recall_interval)}).`,
      estimate.fallback ? " The answers are too few to beat the phrase itself, so it is used as it is." : "");
    this.curve.replaceChildren(drawn(curve, at));
    const name = h("input", { id: "taught-name", type: "text", required: true, value: this.saved ?? "", placeholder: "cancel" });
    const found = link("mine", { phrases: `@${this.saved}`, probability: at ?? 0.5, index: this.index });
    this.saving.replaceChildren(this.kept
      ? h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.learn({ save: name.value.trim(), name: name.value.trim() }); } },
        h("label", { for: "taught-name" }, "Save as"), name, h("button", {}, "Save"),
        this.saved ? h("a", { href: found }, `Find all of ${this.saved}`) : null)
      : h("p", { class: "hint" }, "To save it, start the server with --workspace FOLDER."));
  }
}

/** Return how right matches are by the probability that they have at least, with intervals. */
function drawn(curve, at) {
  const x = (probability) => 100 * probability, y = (share) => 40 - 40 * share;
  const points = curve.map(({ estimate }) => estimate);
  const upper = points.map((one) => `${x(one.probability)},${y(one.precision_interval[1])}`);
  const lower = points.map((one) => `${x(one.probability)},${y(one.precision_interval[0])}`).reverse();
  return svg("svg", { class: "curve", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": "How many matches are right, by the least probability" },
    svg("polygon", { points: [...upper, ...lower].join(" ") }),
    svg("polyline", { points: points.map((one) => `${x(one.probability)},${y(one.precision)}`).join(" ") }),
    at === null ? null : svg("line", { x1: x(at), x2: x(at), y1: 0, y2: 40 }));
}
