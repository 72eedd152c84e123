// The same for other programs, as the server says it.
import { failed, post } from "./api.js";
import { button, h } from "./dom.js";

const FORMS = { curl: "curl", command: "Command line", python: "Python", dsl: "Cluster" };

/** Return a disclosure that says a request, of a search or a mining, as other programs make it; `body` returns it. */
export function same(verb, body) {
  const inside = h("div", { class: "same-inside" });
  const form = (title, text, note) => h("section", { "data-form": title }, h("div", { class: "bar-row" }, h("h3", {}, title), text ? button("Copy", (event) => {
    navigator.clipboard.writeText(text).then(() => { event.target.textContent = "Copied"; });
  }, { class: "plain" }) : null), note ? h("p", { class: "hint" }, note) : null, text ? h("pre", { tabindex: 0 }, text) : null);
  return h("details", { class: "same", ontoggle: async (event) => {
    if (!event.target.open || inside.childElementCount) return;
    try {
      const told = await post(`api/same/${verb}?url=${encodeURIComponent(new URL(".", location.href).href)}`, body());
      inside.replaceChildren(...Object.entries(FORMS).map(([name, title]) => form(title, told[name], name === "dsl" ? told.note : "")));
    } catch (error) {
      inside.replaceChildren(failed(error));
    }
  } }, h("summary", {}, "The same as …"), inside);
}
