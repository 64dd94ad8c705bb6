"use strict";
// Tables that sort, one filter for all rows, figures that open large and name their marks, and a switch between light and dark. The page is
// whole without any of it.

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

// Figures open in a dialog: buttons, wheel, + - 0 and dragging.

const dialog = document.getElementById("zoom");
const stage = dialog.querySelector(".stage");
const picture = stage.querySelector("img");
let scale = 1;
let fit = 1;

function show(next, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const before = scale;
  scale = Math.min(Math.max(next, fit / 2), fit * 16);
  const left = (stage.scrollLeft + x) * (scale / before) - x;
  const top = (stage.scrollTop + y) * (scale / before) - y;
  picture.style.width = `${picture.dataset.width * scale}px`;
  stage.scrollLeft = left;
  stage.scrollTop = top;
}

function open(button) {
  const small = button.querySelector("img");
  picture.src = small.src;
  picture.alt = small.alt;
  picture.dataset.width = small.getAttribute("width");
  dialog.querySelector("span").textContent = button.dataset.title;
  dialog.showModal();
  fit = Math.min(stage.clientWidth / small.getAttribute("width"), stage.clientHeight / small.getAttribute("height"));
  show(fit, 0, 0);
}

for (const image of document.querySelectorAll("figure img")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "zoom";
  button.dataset.title = image.dataset.title;
  button.setAttribute("aria-label", `Enlarge the figure ${image.dataset.title}`);
  image.replaceWith(button);
  button.append(image);
  button.addEventListener("click", () => open(button));
}

const moves = {
  in: () => show(scale * 1.5),
  out: () => show(scale / 1.5),
  fit: () => show(fit),
};
dialog.addEventListener("click", (event) => moves[event.target.dataset.zoom]?.());
dialog.addEventListener("keydown", (event) => {
  const move = { "+": moves.in, "=": moves.in, "-": moves.out, 0: moves.fit }[event.key];
  if (move) {
    event.preventDefault();
    move();
  }
});
stage.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const box = stage.getBoundingClientRect();
    show(scale * (event.deltaY < 0 ? 1.2 : 1 / 1.2), event.clientX - box.left, event.clientY - box.top);
  },
  { passive: false },
);
stage.addEventListener("pointerdown", (event) => {
  if (event.target !== picture) return;
  event.preventDefault();
  stage.setPointerCapture(event.pointerId);
});
stage.addEventListener("pointermove", (event) => {
  if (!stage.hasPointerCapture(event.pointerId)) return;
  stage.scrollLeft -= event.movementX;
  stage.scrollTop -= event.movementY;
});

// The mark of a figure that is nearest to the pointer says what it shows.

const REACH = 18; // pixels
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function nearest(marks, box, x, y) {
  let text = "";
  let least = REACH;
  for (const [across, down, title] of marks) {
    const distance = Math.hypot(box.left + (across * box.width) / 100 - x, box.top + (down * box.height) / 100 - y);
    if (distance < least) [least, text] = [distance, title];
  }
  return text;
}

for (const image of document.querySelectorAll("img[data-dots]")) {
  const marks = JSON.parse(image.dataset.dots);
  image.addEventListener("pointermove", (event) => {
    tip.textContent = nearest(marks, image.getBoundingClientRect(), event.clientX, event.clientY);
    tip.hidden = tip.textContent === "";
    tip.style.left = `${Math.min(event.clientX + 12, root.clientWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
  image.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
}

// Light, dark, or as the system has it.

document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});

root.classList.add("js");
