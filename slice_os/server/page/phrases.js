// Phrases as `slice-os mine` takes them: one a line, or a CSV with the columns name and phrase, optionally not.

/** Return the rows of a CSV: cells, quoted as RFC 4180 says. */
export function rowsOf(text) {
  const rows = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  for (let found; cell.lastIndex < text.length && (found = cell.exec(text));) {
    rows.at(-1).push(found[1]?.replaceAll('""', '"') ?? found[2]);
    if (found[3] !== ",") rows.push([]);
  }
  return rows.filter((row) => row.some((value) => value.trim()));
}

/** Return phrases and counter-examples by name, and names of taught phrases (@NAME). */
export function parse(text) {
  const phrases = {}, counterExamples = {}, taught = [];
  const add = (some, name, value) => { if (value) (some[name] ??= []).includes(value) || some[name].push(value); };
  const one = (name, phrase) => (phrase.startsWith("@") ? taught.includes(phrase.slice(1)) || taught.push(phrase.slice(1)) : add(phrases, name || phrase, phrase));
  const rows = rowsOf(text.replace(/^\uFEFF/, ""));
  const head = rows[0]?.map((name) => name.trim().toLowerCase()) ?? [];
  if (head.includes("phrase") && head.length > 1) {
    for (const row of rows.slice(1)) {
      const { name = "", phrase = "", not = "" } = Object.fromEntries(head.map((key, n) => [key, (row[n] ?? "").trim()]));
      if (phrase) one(name, phrase);
      add(counterExamples, name || phrase, not);
    }
  } else {
    for (const line of text.replace(/^\uFEFF/, "").split(/\r?\n/)) if (line.trim()) one("", line.trim());
  }
  return { phrases, counterExamples, taught };
}

/** Return phrases that are their own names as a list, others by name: the shorter form of a body. */
export function shortest(phrases) {
  const own = Object.entries(phrases).every(([name, some]) => some.length === 1 && some[0] === name);
  return own ? Object.keys(phrases) : phrases;
}
