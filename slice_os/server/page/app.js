// The page: which view is shown, of which index.
import { failed, get } from "./api.js";
import { h } from "./dom.js";
import { differByDocument, openOf } from "./reader.js";
import "./selection.js";
import { change, go, link, read, values, watch } from "./state.js";

const VIEWS = {
  search: ["Search", () => import("./search.js").then(({ Search }) => new Search())],
  mine: ["Mine", () => import("./mine.js").then(({ Mine }) => new Mine())],
  teach: ["Teach", () => import("./teach.js").then(({ Teach }) => new Teach())],
  compare: ["Compare", () => import("./compare.js").then(({ Compare }) => new Compare())],
};
const main = document.getElementById("main");
const made = new Map();
let server = null;

async function describeServer() {
  server ??= await get("api/server");
  document.getElementById("server").textContent = `slice-os ${server.version} · ${server.encoder}`;
  const select = document.getElementById("index");
  select.replaceChildren(...server.indexes.map((name, n) => h("option", { value: n ? name : "" }, name)));
  document.getElementById("index-choice").hidden = server.indexes.length < 2;
  select.onchange = () => change({ index: select.value || undefined });
  return server;
}

async function show({ view, parameters }) {
  const name = view in VIEWS ? view : "search";
  const [title, make] = VIEWS[name];
  const asked = parameters.get("query") ?? parameters.get("phrases")?.split("\n")[0];
  document.title = `${asked ? `${asked} · ` : ""}${title} · slice-os`;
  const index = parameters.get("index") ?? undefined;
  document.getElementById("views").replaceChildren(...Object.entries(VIEWS).map(([other, [text]]) => h("a", {
    href: link(other, { index }), "aria-current": other === name ? "page" : undefined,
    onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      const now = read();
      left.set(now.view, values(now.parameters));
      go(other, left.get(other) ?? { index });
    },
  }, text)));
  try {
    const told = await describeServer();
    document.getElementById("index").value = index ?? "";
    if (!made.has(name)) {
      const one = await make();
      await one.load(told);
      made.set(name, one);
    }
    const shown = made.get(name);
    if (main.firstChild !== shown.element) main.replaceChildren(shown.element);
    shown.show(parameters);
    openOf(parameters);
  } catch (error) {
    main.replaceChildren(failed(error));
  }
}

/** How each view was left, so that going back to it loses nothing. */
const left = new Map();
let showing = Promise.resolve();

document.getElementById("skip").onclick = (event) => {
  event.preventDefault();
  main.focus();
};
watch((state, former) => {
  if (former && main.firstElementChild?.matches(".view") && differByDocument(state, former)) openOf(state.parameters);
  else showing = showing.then(() => show(state));
});
