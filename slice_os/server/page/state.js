// What is shown is in the address, behind #: VIEW?name=value. So every state is a link, and Back works.
const listeners = [];
const PUSHED = "pushed";
let former = location.hash; // the address before a change that is none of ours

/** Return the view and its parameters, as the address has them. */
export function read(hash = location.hash) {
  const [view, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  return { view: view || "search", parameters: new URLSearchParams(query) };
}

/** Return the address of a view: lists repeat their name, what is empty is left out. */
export function link(view, values = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== "" && item !== false) parameters.append(name, String(item));
    }
  }
  const query = parameters.toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

/** Return parameters as an object: a list where a name is repeated. */
export function values(parameters) {
  return Object.fromEntries([...new Set(parameters.keys())].map((name) => {
    const all = parameters.getAll(name);
    return [name, all.length > 1 ? all : all[0]];
  }));
}

/** Go to a view with these parameters and no others; `replace`: as a change of the same state. */
export function go(view, given = {}, { replace = false } = {}) {
  const address = link(view, given);
  if (address !== (location.hash || "#search")) history[replace ? "replaceState" : "pushState"](null, "", address);
  tell();
}

function tell(before) {
  former = location.hash;
  for (const listener of listeners) listener(read(), before);
}

/** Change some parameters of the present view; undefined removes one. */
export function change(changes, options = {}) {
  const { view, parameters } = read();
  go(view, { ...values(parameters), ...changes }, options);
}

/** Write parameters into the address without telling anybody: for sliders, answers and documents; `push`: as a new state. */
export function note(changes, { push = false } = {}) {
  const { view, parameters } = read();
  history[push ? "pushState" : "replaceState"](push ? PUSHED : history.state, "", link(view, { ...values(parameters), ...changes }));
  former = location.hash;
}

/** Undo the last `note` that was pushed, as Back does; `changes` do so where the state was come to otherwise. */
export function undo(changes) {
  if (history.state === PUSHED) history.back();
  else note(changes);
}

/** Be told the state at every change and now; of one by Back, Forward or a typed address also the state before. */
export function watch(listener) {
  listeners.push(listener);
  listener(read());
}

addEventListener("popstate", () => tell(read(former)));
