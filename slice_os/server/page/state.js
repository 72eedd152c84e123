// What is shown is in the address, behind #: VIEW?name=value. So every state is a link, and Back works.
const listeners = [];

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
  for (const listener of listeners) listener(read());
}

/** Change some parameters of the present view; undefined removes one. */
export function change(changes, options = {}) {
  const { view, parameters } = read();
  go(view, { ...values(parameters), ...changes }, options);
}

/** Write parameters into the address without telling anybody: for sliders and answers. */
export function note(changes) {
  const { view, parameters } = read();
  history.replaceState(null, "", link(view, { ...values(parameters), ...changes }));
}

/** Be told of every change of the state, and now. */
export function watch(listener) {
  listeners.push(listener);
  listener(read());
}

addEventListener("popstate", () => listeners.forEach((listener) => listener(read())));
