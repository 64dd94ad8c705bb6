// Figures open in a dialog: buttons, wheel, + - 0 and dragging; page.js comes first in the same script.

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
