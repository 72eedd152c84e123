// A document, open at the place of a match.
import { failed, get } from "./api.js";
import { button, h } from "./dom.js";
import { link, note, read, undo, values } from "./state.js";
import { cut } from "./text.js";

const STEPS = [2, 10, 1000];
const CLOSED = { document: undefined, at: undefined, to: undefined, of: undefined };
const dialog = document.getElementById("reader");
dialog.onclose = () => read().parameters.has("document") && undo(CLOSED);
let opened = ""; // the place that is open

/** Open a document with some of its characters marked; the address says so, and Back closes it. `index`: another than the state's. */
export function openDocument({ document: id, start, end, index }) {
  const usual = read().parameters.get("index");
  note({ document: id, at: start, to: end, of: (index ?? usual) === usual ? undefined : index }, { push: true });
  openOf(read().parameters);
}

/** Open the document that a state names, at its place; close what is open if it names none. */
export function openOf(parameters) {
  const id = parameters.get("document");
  if (id === null) {
    if (dialog.open) dialog.close();
    return;
  }
  const place = ["at", "to"].map((name) => Number(parameters.get(name) ?? 0));
  const wanted = JSON.stringify([id, ...place, parameters.get("of") ?? parameters.get("index")]);
  if (dialog.open && opened === wanted) return;
  opened = wanted;
  show(...JSON.parse(wanted));
}

/** Tell whether two states differ in the document that is open, and in nothing else. */
export function differByDocument(state, other) {
  const [one, two] = [state, other].map(({ view, parameters }) => link(view, { ...values(parameters), ...CLOSED }));
  return one === two;
}

async function show(id, start, end, index, step = 0) {
  const place = opened;
  const body = h("div", { class: "reader-text" }, h("p", { role: "status" }, "Reading …"));
  const more = button("More around it", () => show(id, start, end, index, step + 1), { hidden: true });
  dialog.replaceChildren(
    h("header", {}, h("h2", { id: "reader-title" }, id), button("Close", () => dialog.close(), { "aria-keyshortcuts": "Escape" })),
    body, h("footer", { class: "row" }, more));
  if (!dialog.open) dialog.showModal();
  try {
    const query = new URLSearchParams({ at: start, context: STEPS[step], ...(index ? { index } : {}) });
    const excerpt = await get(`api/documents/${encodeURIComponent(id)}?${query}`);
    if (place !== opened) return; // another was opened meanwhile
    const [before, within, after] = cut(excerpt.text, start - excerpt.start, end - excerpt.start);
    const mark = h("mark", { style: { "--depth": 0.8 } }, within);
    if (excerpt.title) dialog.querySelector("h2").textContent = excerpt.title;
    body.replaceChildren(h("p", { class: "text", tabindex: 0, "data-document": id, "data-offset": excerpt.start }, before, mark, after));
    more.hidden = step + 1 >= STEPS.length;
    mark.scrollIntoView({ block: "center" });
  } catch (error) {
    if (place === opened) body.replaceChildren(failed(error));
  }
}
