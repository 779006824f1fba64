"use strict";
const body = document.querySelector("#findings tbody");
const rows = [...body.rows];
const controls = document.forms.filter.elements;

function filter() {
  const text = controls.text.value.toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits =
      (!controls.problem.value || row.cells[2].textContent === controls.problem.value) &&
      (!controls.split.value || row.cells[0].textContent === controls.split.value) &&
      (!text || row.textContent.toLowerCase().includes(text));
    row.hidden = !fits;
    shown += fits;
  }
  document.querySelector("output").textContent = `${shown} shown`;
}

function sort(header) {
  const column = header.cellIndex;
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[column].textContent;
  const compare = (a, b) => (column === 3 ? value(a) - value(b) : value(a).localeCompare(value(b), "en", { numeric: true }));
  rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
  body.append(...rows);
}

document.forms.filter.hidden = false;
document.forms.filter.addEventListener("input", filter);
document.forms.filter.addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("#findings th button"))
  button.addEventListener("click", () => sort(button.parentNode));
filter();
