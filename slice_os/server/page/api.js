// What the server is asked. The token, where it wants one, is kept until the tab is closed.
import { button, h } from "./dom.js";

const KEY = "slice-os-token";

/** What the server refuses: a sentence, and what to do about it. */
export class Refusal extends Error {
  constructor(answer, status) {
    super(answer.error || `The server answers with status ${status}.`);
    this.hint = answer.hint || "";
    this.status = status;
  }
}

function askToken() {
  const dialog = document.getElementById("token");
  return new Promise((resolve, reject) => {
    const field = h("input", { id: "token-field", type: "password", autocomplete: "off", required: true });
    const form = h("form", { onsubmit: (event) => {
      event.preventDefault();
      sessionStorage.setItem(KEY, field.value.trim());
      dialog.close("given");
    } },
      h("h2", { id: "token-title" }, "This server needs its token"),
      h("p", {}, h("label", { for: "token-field" }, "The value of SLICE_OS_TOKEN where it was started")),
      field,
      h("p", { class: "row" }, h("button", { class: "primary" }, "Go on"), button("Cancel", () => dialog.close())));
    dialog.replaceChildren(form);
    dialog.returnValue = "";
    dialog.onclose = () => (dialog.returnValue ? resolve() : reject(new Refusal({ error: "This server needs its token." }, 401)));
    if (!dialog.open) dialog.showModal();
  });
}

let asking = null;

async function ask(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal({ error: "The server cannot be reached.", hint: "Is slice-os serve still running?" }, 0);
    }
    if (response.status !== 401) {
      if (response.ok) return response;
      throw new Refusal(await response.json().catch(() => ({})), response.status);
    }
    asking ??= askToken().finally(() => { asking = null; });
    await asking;
  }
}

const posted = (body, signal) => ({
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
});

/** Return the answer to a GET. */
export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

/** Return the answer to a POST of JSON. */
export async function post(path, body, signal) {
  return (await ask(path, posted(body, signal))).json();
}

/** Return the file that a POST of JSON is answered with. */
export async function made(path, body) {
  return (await ask(path, posted(body))).blob();
}

/** Yield the objects of a stream of JSON lines, in lists of those that have come together. */
export async function* lines(path, body, signal) {
  const response = await ask(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      if (parts.length) yield parts.map((part) => JSON.parse(part));
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Refusal) throw error;
    throw new Refusal({ error: "The connection was cut, and so what is shown is not all.", hint: "Ask again." }, 0);
  } finally {
    reader.releaseLock();
  }
}

let described = null;

/** Return the schema of a body, as /openapi.json describes it. */
export async function schema(name) {
  described ??= get("openapi.json").catch((error) => { described = null; throw error; });
  return (await described).components.schemas[name].properties;
}

/** Return an error as an alert. */
export function failed(error) {
  return h("p", { class: "failure", role: "alert" }, h("strong", {}, error.message), error.hint ? ` ${error.hint}` : "");
}
