// Downloads of what is shown. The server is not asked for it again, only for its form where that is none of a browser's.
import { failed, made } from "./api.js";
import { button, h } from "./dom.js";

/** Return rows as CSV (RFC 4180), objects within as JSON; a leading = + - @ of a text gets an apostrophe. */
export function csv(rows) {
  const names = Object.keys(rows[0] ?? {});
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = typeof value === "object" ? JSON.stringify(value) : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`; // a spreadsheet would run it
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

const KINDS = {
  csv: ["text/csv", csv],
  jsonl: ["application/jsonl", (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join("")],
  parquet: ["application/vnd.apache.parquet", (rows) => made("api/parquet", { columns: columns(rows) })],
};

/** Return rows as columns by name. */
function columns(rows) {
  return Object.fromEntries(Object.keys(rows[0] ?? {}).map((name) => [name, rows.map((row) => row[name] ?? null)]));
}

/** Save rows as a file. */
async function save(name, kind, rows) {
  const [type, write] = KINDS[kind];
  const url = URL.createObjectURL(new Blob([await write(rows)], { type }));
  h("a", { href: url, download: `${name}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Return buttons that save what `rows` returns. */
export function saving(name, rows) {
  const problem = h("span", {});
  return h("span", { class: "saving" }, Object.keys(KINDS).map((kind) => button(`.${kind}`, async () => {
    problem.replaceChildren();
    await save(name, kind, rows()).catch((error) => problem.replaceChildren(failed(error)));
  }, { class: "plain", "aria-label": `Download as ${kind}` })), problem);
}
