"use strict";
// Tables that sort, one filter for all rows, and a switch between light and dark. The page is whole without any of it.

const root = document.documentElement;
const tables = [...document.querySelectorAll("table.sortable")];

function bodyRows(table) {
  return [...table.tBodies[0].rows];
}

// Sorting. Numbers carry their value in data-v; what has none comes last, whichever way the rest goes.

function compare(one, other, sign) {
  const [a, b] = [one.dataset.v, other.dataset.v];
  if (a !== undefined && b !== undefined) return sign * (Number(a) - Number(b));
  if (a !== undefined || b !== undefined) return a !== undefined ? -1 : 1;
  const [text, with_] = [one.textContent, other.textContent];
  if (text === "" || with_ === "") return text === with_ ? 0 : text === "" ? 1 : -1;
  return sign * text.localeCompare(with_, undefined, { numeric: true });
}

function sort(table, heading) {
  const before = heading.getAttribute("aria-sort");
  const after = before === "none" ? "ascending" : before === "ascending" ? "descending" : "none";
  for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", after);
  const column = Number(heading.dataset.column);
  const sign = after === "descending" ? -1 : 1;
  const rows = bodyRows(table);
  rows.sort((one, other) => Number(one.dataset.n) - Number(other.dataset.n));
  if (after !== "none") rows.sort((one, other) => compare(one.cells[column], other.cells[column], sign));
  for (const row of rows) row.classList.toggle("rule", after === "none" && row.dataset.rule === "1");
  table.tBodies[0].append(...rows);
}

for (const table of tables) {
  bodyRows(table).forEach((row, number) => {
    row.dataset.n = String(number);
    row.dataset.rule = row.classList.contains("rule") ? "1" : "0";
    row.dataset.text = `${row.textContent} ${row.dataset.marks ?? ""}`.replace(/\s+/g, " ").toLowerCase();
  });
  for (const heading of table.querySelectorAll("th[data-column]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(table, heading));
  }
}

// The filter: a row stays when it holds every word, in any order, and none that has a minus before it.

const filter = document.getElementById("filter");
const status = document.getElementById("filter-status");

function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  let all = 0;
  for (const table of tables) {
    const rows = bodyRows(table);
    let here = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) =>
        word.length > 1 && word.startsWith("-") ? !row.dataset.text.includes(word.slice(1)) : row.dataset.text.includes(word),
      );
      if (!row.hidden) here += 1;
    }
    const count = table.querySelector("caption .count");
    if (count) count.textContent = words.length ? ` ${here} of ${rows.length} rows` : "";
    shown += here;
    all += rows.length;
  }
  status.textContent = words.length ? `${shown} of ${all} rows` : "";
}

filter.addEventListener("input", applyFilter);

// Light, dark, or as the system has it.

document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});

root.classList.add("js");
