// A document, open at the place of a match.
import { failed, get } from "./api.js";
import { button, h } from "./dom.js";
import { note, read } from "./state.js";
import { cut } from "./text.js";

const STEPS = [2, 10, 1000];

/** Open a document with some of its characters marked; the address says so. */
export function openDocument({ document: id, start, end, index }) {
  note({ document: id, at: start, to: end });
  show(id, start, end, index ?? read().parameters.get("index"));
}

/** Open the document that a state names, if it does. */
export function openOf(parameters) {
  const id = parameters.get("document");
  const dialog = document.getElementById("reader");
  if (id === null) {
    if (dialog.open) dialog.close();
    return;
  }
  if (!dialog.open) show(id, Number(parameters.get("at") ?? 0), Number(parameters.get("to") ?? 0), parameters.get("index"));
}

async function show(id, start, end, index, step = 0) {
  const dialog = document.getElementById("reader");
  const body = h("div", { class: "reader-text" }, h("p", { role: "status" }, "Reading …"));
  const more = button("More around it", () => show(id, start, end, index, step + 1), { hidden: true });
  dialog.replaceChildren(
    h("header", {}, h("h2", { id: "reader-title" }, id), button("Close", () => dialog.close(), { "aria-keyshortcuts": "Escape" })),
    body, h("footer", { class: "row" }, more));
  dialog.onclose = () => note({ document: undefined, at: undefined, to: undefined });
  if (!dialog.open) dialog.showModal();
  try {
    const query = new URLSearchParams({ at: start, context: STEPS[step], ...(index ? { index } : {}) });
    const excerpt = await get(`api/documents/${encodeURIComponent(id)}?${query}`);
    const [before, within, after] = cut(excerpt.text, start - excerpt.start, end - excerpt.start);
    const place = h("mark", { style: { "--depth": 0.8 } }, within);
    if (excerpt.title) dialog.querySelector("h2").textContent = excerpt.title;
    body.replaceChildren(h("p", { class: "text", tabindex: 0, "data-document": id, "data-offset": excerpt.start }, before, place, after));
    more.hidden = step + 1 >= STEPS.length;
    place.scrollIntoView({ block: "center" });
  } catch (error) {
    body.replaceChildren(failed(error));
  }
}
