// Texts with words marked. Offsets count code points, of which JavaScript may have two units.
import { h, shown } from "./dom.js";

/** Return a share in [0, 1] of how deep a colour is, for a degree: .5 and less is none. */
export const depth = (degree) => Math.min(1, Math.max(0.08, (degree - 0.5) * 2)).toFixed(2);

/** Return the parts before, within and behind some code points of a text. */
export function cut(text, start, end) {
  const points = Array.from(text);
  return [points.slice(0, start), points.slice(start, end), points.slice(end)].map((part) => part.join(""));
}

/** Return words with their shares: white space parts them; where that does not fit, the text has one. */
export function shares(text, contributions) {
  const words = text.split(/\s+/u).filter(Boolean);
  return words.length === contributions.length ? words.map((word, n) => [word, contributions[n]]) : [];
}

/** Return the list of what each word contributes to a span's degree, largest bar for the largest. */
function breakdown(span, id) {
  const pairs = shares(span.text, span.contributions);
  const most = Math.max(...span.contributions, 1e-9);
  return h("span", { class: "why", id, role: "tooltip" },
    h("span", { class: "why-head" }, `degree ${shown(span.degree)}, in context ${shown(span.in_context_degree)}`),
    pairs.map(([word, share]) => h("span", { class: "why-word" },
      h("span", { class: "why-text" }, word),
      h("span", { class: "bar", style: { "--share": Math.max(0, share / most).toFixed(3) } }),
      h("span", { class: "why-share" }, share.toFixed(3)))));
}

let number = 0;

/** Return a span as a mark: shaded by its degree, its words by what they contribute; why on hover and focus. */
export function marked(span, text) {
  const id = `why-${number += 1}`;
  const pairs = shares(text, span.contributions ?? []);
  const most = Math.max(...(span.contributions ?? []), 1e-9);
  let words = [text];
  if (pairs.length) {
    let n = 0;
    words = text.split(/(\s+)/u).map((piece) => (/^\s*$/u.test(piece) ? piece
      : h("span", { class: "word", style: { "--share": Math.max(0, pairs[n++][1] / most).toFixed(3) } }, piece)));
  }
  return h("mark", {
    style: { "--depth": depth(span.degree) }, tabindex: pairs.length ? 0 : undefined,
    "aria-describedby": pairs.length ? id : undefined,
  }, words, pairs.length ? breakdown(span, id) : null);
}

/** Return the best words of a hit: characters of its document, none where it has no span. */
export function placeOf(hit) {
  const [span] = hit.spans;
  return { document: hit.document, start: hit.document_start + (span?.start ?? 0), end: hit.document_start + (span?.end ?? 0) };
}

/** Return a text as nodes, its spans (offsets into it) marked; those that overlap an earlier one are left out. */
export function highlight(text, spans) {
  const points = Array.from(text);
  const nodes = [];
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < at) continue;
    nodes.push(points.slice(at, span.start).join(""), marked(span, points.slice(span.start, span.end).join("")));
    at = span.end;
  }
  return [...nodes, points.slice(at).join("")];
}
