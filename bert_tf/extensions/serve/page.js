"use strict";
// Asks the service, and shows what it answers. All text goes in as text, never as markup.

const form = document.getElementById("ask");
const answer = document.getElementById("answer");
const raw = document.getElementById("raw");

function make(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function within(tag, parts, attributes) {
  const made = make(tag, undefined, attributes);
  made.append(...parts);
  return made;
}

const percent = share => `${(100 * share).toFixed(1)} %`;

// Rows of texts, a share as a bar, and the share as a number.
function bars(captions, entries, isBest = () => false) {
  const rows = entries.map(([first, ...rest], place) => {
    const share = rest.pop();
    const bar = make("div", undefined, { class: "bar" });
    bar.style.setProperty("--share", share);
    return within("tr", [
      make("th", first, { scope: "row" }), ...rest.map(text => make("td", text)),
      within("td", [bar], { class: "bars", "aria-hidden": "true" }), make("td", percent(share), { class: "n" }),
    ], isBest(first, place) ? { class: "best" } : {});
  });
  return table([...captions, "", "probability"], rows);
}

function table(captions, rows) {
  const head = within("tr", captions.map(caption => caption ? make("th", caption, { scope: "col" }) : make("td")));
  return within("div", [within("table", [within("thead", [head]), within("tbody", rows)])], { class: "scroll" });
}

// A text with places marked; they are counted in code points, as Python counts, not in JavaScript's units.
function marked(text, places) {
  const characters = Array.from(text), parts = [];
  let at = 0;
  for (const { start, end, label, colour } of places) {
    if (start < at) continue;
    parts.push(characters.slice(at, start).join(""));
    const mark = make("mark", characters.slice(start, end).join(""), { class: `mark-${colour}` });
    if (label) mark.append(make("small", label));
    parts.push(mark);
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  return within("p", parts, { class: "text" });
}

const shown = {
  labels(found) {
    const chosen = [].concat(found.label);
    const all = Object.entries(found.probabilities).sort((a, b) => b[1] - a[1]);
    return [make("p", chosen.join(", ") || "no label", { class: "big" }), bars(["label"], all, name => chosen.includes(name))];
  },
  number(found) {
    return [make("p", found.label.toFixed(4), { class: "big" })];
  },
  answer(found, row) {
    const parts = [make("p", found.label || "The text has no answer.", { class: "big" })];
    if (found.start !== null) parts.push(marked(row.context, [{ start: found.start, end: found.end, colour: 0 }]));
    const others = found.n_best.slice(0, 5).map(one => [one.text || "(no answer)", one.probability]);
    return [...parts, bars(["answer"], others, name => name === (found.label || "(no answer)"))];
  },
  words(found, row) {
    const types = [...new Set(found.entities.map(one => one.type))].sort();
    if (found.entities.length) {
      const places = found.entities.map(one => ({ start: one.start, end: one.end, label: one.type, colour: types.indexOf(one.type) % 8 }));
      return [marked(row.text, places), bars(["entity", "type"], found.entities.map(one => [one.text, one.type || "–", one.score]))];
    }
    if (found.label.every(tag => tag === "O")) return [marked(row.text, []), make("p", "No entities.", { class: "soft" })];
    return [bars(["word", "tag"], found.words.map((word, place) => [word, found.label[place], found.scores[place]]))];
  },
  options(found, row) {
    const all = row.options.map((option, place) => [option, found.probabilities[place]]);
    return [make("p", found.option, { class: "big" }), bars(["option"], all, (_, place) => place === found.label)];
  },
  pair(found) {
    return [make("p", found.label.toFixed(3), { class: "big" }), make("p", `Cosine of both vectors: ${found.cosine.toFixed(4)}`)];
  },
  json(found) {
    return [within("pre", [make("code", JSON.stringify(found, null, 2))])];
  },
};

// Words of both texts, coloured by score, then those with the largest scores.
function explained(found) {
  const largest = Math.max(...found.scores.map(Math.abs)) || 1;
  const words = found.words.map((word, place) => ({ word, score: found.scores[place], segment: found.segments[place] }));
  const texts = [0, 1].map(segment => words.filter(one => one.segment === segment)).filter(text => text.length);
  const label = typeof found.label === "number" && !Number.isInteger(found.label) ? found.label.toFixed(4) : String(found.label);
  const facts = `Output ${found.output.toFixed(4)}, without words ${found.baseline.toFixed(4)}; completeness error ${(100 * found.completeness_error).toFixed(2)} %.`;
  const strongest = [...words].sort((a, b) => Math.abs(b.score) - Math.abs(a.score)).slice(0, 10);
  const rows = strongest.map(one => within("tr", [make("th", one.word, { scope: "row" }), make("td", signed(one.score), { class: "n" })]));
  return [make("h3", `Why ${label || "no answer"}`), make("p", "Green words raise it, red words lower it.", { class: "soft" }),
    ...texts.map(text => coloured(text, largest)),
    within("details", [make("summary", "Scores"), make("p", facts), table(["word", "score"], rows)])];
}

const signed = score => `${score < 0 ? "" : "+"}${score.toFixed(4)}`;

function coloured(words, largest) {
  const parts = words.map(({ word, score }) => {
    const mark = make("mark", word, { class: score < 0 ? "lowers" : "raises", title: signed(score) });
    mark.style.setProperty("--share", Math.abs(score) / largest);
    return mark;
  });
  return within("p", parts.flatMap(part => [part, " "]), { class: "text" });
}

function asked() {
  if (form.dataset.shown === "json") return JSON.parse(form.elements.body.value);
  const row = {};
  for (const field of form.querySelectorAll("textarea")) {
    const value = "list" in field.dataset ? field.value.split("\n").filter(line => line.trim()) : field.value;
    if (!("optional" in field.dataset) || value.trim()) row[field.name] = value;
  }
  if ("text_a" in row && !("text_b" in row)) return { text: row.text_a };
  return row;
}

function say(parts, object) {
  answer.replaceChildren(...parts);
  raw.hidden = object === undefined;
  raw.querySelector("code").textContent = object === undefined ? "" : JSON.stringify(object, null, 2);
}

function complain(message) {
  say([make("p", message, { class: "error" })]);
}

async function post(call, row) {
  const response = await fetch(call + (form.dataset.model || ""), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(row) });
  const said = await response.json();
  if (!response.ok) throw new Refused(said.error.message);
  return said;
}

class Refused extends Error {}

async function ask(event) {
  event.preventDefault();
  const buttons = form.querySelectorAll("button");
  const call = event.submitter?.value || "predict";
  for (const button of buttons) button.disabled = true;
  answer.setAttribute("aria-busy", "true");
  try {
    const row = asked();
    const said = await post("predict", row);
    const parts = said.predictions.flatMap(one => shown[form.dataset.shown](one, row));
    say(parts, said);
    if (call !== "explain") return;
    const why = await post("explain", row);
    say([...parts, ...explained(why)], { ...said, explanation: why });
  } catch (error) {
    if (error instanceof Refused) complain(error.message);
    else complain(error instanceof SyntaxError ? `Not JSON: ${error.message}` : "The service does not answer.");
  } finally {
    for (const button of buttons) button.disabled = false;
    answer.removeAttribute("aria-busy");
  }
}

if (form) {
  form.addEventListener("submit", ask);
  form.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
