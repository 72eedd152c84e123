// Any words that are selected in a text: more like these, or less.
import { button, h } from "./dom.js";
import { change, go, read } from "./state.js";

const MOST = 300;

/** Return the words that are selected within one text, or nothing. */
function selected() {
  const selection = getSelection();
  const { anchorNode } = selection;
  const inside = (anchorNode instanceof Element ? anchorNode : anchorNode?.parentElement)?.closest(".text");
  const text = selection.toString().replace(/\s+/g, " ").trim();
  return inside && inside.contains(selection.focusNode) && text.length <= MOST ? text : "";
}

/** Search with words as liked or disliked, or mine with them as a counter-example of the first phrase. */
function use(kind, text) {
  const { view, parameters } = read();
  const index = parameters.get("index") ?? undefined;
  if (view === "search" && parameters.get("query")) {
    change({ [kind]: [...parameters.getAll(kind), text] });
  } else if (kind === "liked") {
    go("search", { query: text, index });
  } else {
    const first = (parameters.get("phrases") ?? "").split("\n")[0].trim();
    change({ not: [...parameters.getAll("not"), `${first}=${text}`] });
  }
  getSelection().removeAllRanges();
}

const offer = h("div", { class: "offer", role: "group", "aria-label": "The selected words", hidden: true });
document.body.append(offer);
document.addEventListener("selectionchange", () => {
  const text = selected();
  offer.hidden = !text;
  if (!text) return;
  const box = getSelection().getRangeAt(0).getBoundingClientRect();
  const { view, parameters } = read();
  const canBeLess = view === "search" ? parameters.get("query") : parameters.get("phrases");
  offer.replaceChildren(button("More like this", () => use("liked", text)),
    canBeLess ? button("Not like this", () => use("disliked", text)) : "");
  offer.style.setProperty("left", `${Math.max(8, box.left + scrollX)}px`);
  offer.style.setProperty("top", `${box.bottom + scrollY + 6}px`);
});
