"use strict";
// Filters and sorts the findings, takes decisions on training rows, and writes them as a file for --exclude_rows and --relabel.
(() => {
  const PAGE = 200; // rows shown at once
  const body = document.querySelector("#findings tbody");
  const rows = [...body.rows];
  const byId = (id) => document.getElementById(id);
  const filter = byId("filter").elements;
  const known = byId("labels").hasAttribute("data-only") && new Set([...byId("labels").options].map((one) => one.value));
  const none = byId("labels").hasAttribute("data-none") ? "(none)" : ""; // what an empty label means
  const store = `bert_tf audit ${document.querySelector("meta[name=table-sha256]").content}`;
  const decisions = new Map(load()); // by row of the data: [action, label]
  const sisters = new Map(); // findings of the same row
  for (const row of rows) {
    if (!("train" in row.dataset)) row.cells[5].textContent = "not a training row";
    else sisters.set(row.dataset.id, [...(sisters.get(row.dataset.id) || []), row]);
  }
  let most = PAGE;
  let shown = [];

  function load() {
    try {
      return JSON.parse(localStorage.getItem(store)) || [];
    } catch {
      return []; // without storage, decisions last as long as the page
    }
  }

  function keep() {
    try {
      localStorage.setItem(store, JSON.stringify([...decisions]));
    } catch { /* as above */ }
  }

  const isUsable = ([action, label]) => action !== "relabel" || (known ? known.has(label) : none || label.trim());
  const isDecided = (row) => decisions.has(row.dataset.id) && "train" in row.dataset;
  const proposal = ({ dataset: { action, suggested } }) => action ? [action, suggested] : null;
  const isOpen = (row) => "train" in row.dataset && !isDecided(row);

  function decide(row, decision) {
    if (decision) decisions.set(row.dataset.id, decision);
    else decisions.delete(row.dataset.id);
    sisters.get(row.dataset.id).forEach(show);
  }

  function make(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // Controls are made where a row is first shown: a page may have thousands.
  function build(row) {
    const cell = row.cells[5];
    if (cell.childElementCount || !("train" in row.dataset)) return;
    const name = `train row ${row.dataset.id}`;
    const offered = proposal(row);
    row.setAttribute("aria-keyshortcuts", "A X R K U");
    const offer = offered?.[0] === "relabel" ? offered[1] || none : "exclude";
    if (offered) cell.append(make("button", `Accept: ${offer}`, { type: "button" }));
    const select = make("select", "", { "aria-label": `Decision on ${name}` });
    for (const [value, text] of [["", "open"], ["keep", "keep"], ["exclude", "exclude"], ["relabel", "relabel"]]) select.append(make("option", text, { value }));
    const attributes = { list: "labels", autocomplete: "off", placeholder: none };
    const input = make("input", "", { "aria-label": `New label of ${name}`, ...attributes });
    cell.append(select, input);
    show(row);
  }

  function show(row) {
    const [select, input] = row.querySelectorAll("select, input");
    if (!select) return;
    const decision = decisions.get(row.dataset.id) || ["", ""];
    row.classList.toggle("decided", isDecided(row));
    select.value = decision[0];
    input.hidden = decision[0] !== "relabel";
    if (input !== document.activeElement) input.value = decision[1];
    input.toggleAttribute("aria-invalid", !isUsable(decision));
    const accept = row.querySelector("td.decision button");
    if (accept) accept.hidden = isDecided(row);
  }

  function count() {
    const values = [...decisions.values()];
    const of = (action) => values.filter((one) => one[0] === action && isUsable(one)).length;
    const missing = values.filter((one) => !isUsable(one)).length;
    const parts = [`${of("exclude")} to exclude`, `${of("relabel")} to relabel`, `${of("keep")} kept`];
    byId("progress").textContent = `${values.length} of ${sisters.size} training rows here are decided: ${parts.join(", ")}` +
      (missing ? `; ${missing} without a ${known ? "known " : ""}label, left out` : "") + `. ${shown.length} findings match.`;
    byId("download").disabled = values.length === missing;
    const offers = new Set(shown.filter((row) => isOpen(row) && proposal(row)).map((row) => row.dataset.id)).size;
    byId("accept-all").textContent = `Accept all ${offers} proposals that match`;
    byId("accept-all").disabled = !offers;
  }

  function changed() {
    keep();
    count();
  }

  function select() {
    const wanted = filter.text.value.toLowerCase();
    shown = rows.filter((row) =>
      (!filter.problem.value || row.dataset.problem === filter.problem.value) &&
      (!filter.split.value || row.dataset.split === filter.split.value) &&
      (!filter.decision.value || (filter.decision.value === "open" ? isOpen(row) : isDecided(row))) &&
      [0, 3, 4].some((place) => row.cells[place].textContent.toLowerCase().includes(wanted)));
    refresh();
  }

  function refresh() {
    const visible = new Set(shown.slice(0, most));
    for (const row of rows) row.hidden = !visible.has(row);
    for (const row of visible) build(row);
    const first = shown[0];
    for (const row of rows) row.tabIndex = row === first ? 0 : -1;
    byId("more").hidden = shown.length <= most;
    byId("more").textContent = `Show ${Math.min(PAGE, shown.length - most)} more of ${shown.length}`;
    count();
  }

  function sort(header) {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[header.cellIndex].textContent;
    rows.sort((a, b) => (down ? -1 : 1) * value(a).localeCompare(value(b), "en", { numeric: true }));
    body.append(...rows);
    select();
  }

  function move(row, step, isWanted = () => true) {
    for (let at = shown.indexOf(row) + step; at >= 0 && at < Math.min(shown.length, most); at += step) {
      if (!isWanted(shown[at])) continue;
      row.tabIndex = -1;
      shown[at].tabIndex = 0;
      shown[at].focus();
      return;
    }
  }

  function relabel(row) {
    const before = decisions.get(row.dataset.id);
    decide(row, ["relabel", before?.[0] === "relabel" ? before[1] : row.dataset.suggested]);
    row.querySelector("td.decision input").focus();
  }

  const keys = {
    ArrowDown: (row) => move(row, 1),
    ArrowUp: (row) => move(row, -1),
    a: (row) => proposal(row) && decide(row, proposal(row)),
    x: (row) => decide(row, ["exclude", ""]),
    k: (row) => decide(row, ["keep", ""]),
    u: (row) => decide(row, null),
    r: relabel,
  };

  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (event.target.tagName === "INPUT" && event.key === "Enter") return row.focus();
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (event.target !== row || !act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!event.key.startsWith("Arrow") && !("train" in row.dataset)) return;
    act(row);
    changed();
    if ("axk".includes(event.key.toLowerCase()) && isDecided(row)) move(row, 1, isOpen);
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (event.target.tagName !== "BUTTON") return;
    decide(row, proposal(row));
    changed();
    row.focus();
  });
  body.addEventListener("input", ({ target }) => {
    const row = target.closest("tr");
    if (target.tagName === "INPUT") decide(row, ["relabel", target.value]);
    else if (target.value === "relabel") relabel(row);
    else decide(row, target.value ? [target.value, ""] : null);
    changed();
  });
  byId("filter").addEventListener("input", () => {
    most = PAGE;
    select();
  });
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", () => {
    most += PAGE;
    refresh();
  });
  byId("accept-all").addEventListener("click", () => {
    for (const row of shown) if (isOpen(row) && proposal(row)) decide(row, proposal(row));
    changed();
  });
  for (const button of document.querySelectorAll("#findings thead button")) button.addEventListener("click", () => sort(button.parentNode));

  // As in audit.csv: a text that a spreadsheet would compute has an apostrophe before it.
  const isFormula = (text) => /^'*[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);
  const cell = (text) => `"${(isFormula(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

  function corrections() {
    const lines = [["split", "id", "action", "suggested", "label", "text", "text_b"]];
    const beginning = (part) => [...(part?.firstChild?.nodeValue || "").trim()].slice(0, 100).join("");
    for (const [id, [first]] of sisters) {
      const decision = decisions.get(id);
      if (!decision || !isUsable(decision)) continue;
      const texts = [first.cells[4], first.querySelector(":scope > .text > .second")].map(beginning);
      lines.push([first.dataset.split, id, ...decision, first.dataset.label, ...texts]);
    }
    return lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("");
  }

  byId("download").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([corrections()], { type: "text/csv" }));
    make("a", "", { href: address, download: "corrections.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  });

  for (const id of ["filter", "bar", "help"]) byId(id).hidden = false;
  select();
})();
