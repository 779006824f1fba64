"use strict";
const body = document.querySelector("#findings tbody");
const rows = [...body.rows];
const form = document.forms.filter;
const { problem, split, text } = form.elements;

function filter() {
  for (const row of rows)
    row.hidden =
      (problem.value && row.cells[2].textContent !== problem.value) ||
      (split.value && row.cells[0].textContent !== split.value) ||
      !row.textContent.toLowerCase().includes(text.value.toLowerCase());
  document.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} shown`;
}

function sort(header) {
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[header.cellIndex].textContent;
  rows.sort((a, b) => (down ? -1 : 1) * value(a).localeCompare(value(b), "en", { numeric: true }));
  body.append(...rows);
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("#findings th button"))
  button.addEventListener("click", () => sort(button.parentNode));
filter();
