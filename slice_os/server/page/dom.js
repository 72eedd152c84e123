// Elements. Strings become text nodes, never markup: what a document holds is shown, not run.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Return an HTML element. `on…` attributes are listeners, `style` an object of properties. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Return a button with a label. */
export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** Return a number with the word that it counts: "1 match", "2,000 matches". */
export function count(number, noun, nouns = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : nouns}`;
}

/** Return a degree with three digits, rounded down: so what is shown never reaches a threshold that it does not. */
export function shown(number, digits = 3) {
  const scale = 10 ** digits;
  return (Math.floor(number * scale + 1e-6) / scale).toFixed(digits);
}

/** Call a function at most once in some milliseconds, and once more at the end. */
export function seldom(milliseconds, call) {
  let timer = 0, last = 0;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      last = performance.now();
      call();
    }, Math.max(0, milliseconds - (performance.now() - last)));
  };
}
