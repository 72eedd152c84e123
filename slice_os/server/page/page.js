// Searches, and shows passages with the best span marked. All that comes from documents is text.
const [form, query, note, hits] = ["ask", "query", "note", "hits"].map((id) => document.getElementById(id));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const response = await fetch("api/search", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: query.value }),
  });
  const answer = await response.json();
  hits.replaceChildren();
  note.textContent = answer.error ? `${answer.error} ${answer.hint}` : `${answer.hits.length} hits`;
  for (const hit of answer.hits ?? []) {
    const [span] = hit.spans, item = document.createElement("li"), mark = document.createElement("mark");
    const [start, end] = span ? [span.start, span.end] : [0, 0];
    // Offsets count code points, of which JavaScript may have two units.
    const text = Array.from(hit.text);
    mark.textContent = text.slice(start, end).join("");
    item.append(`${hit.degree.toFixed(3)} ${hit.document}: `, text.slice(0, start).join(""), mark, text.slice(end).join(""));
    hits.append(item);
  }
});
