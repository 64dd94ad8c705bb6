// What a user does with the HTML report: sorts tables, filters rows, opens a figure. It runs behind the script of the page,
// and what it finds becomes the title.
const every = { sort: {}, filter: {}, zoom: {} };
{
  const found = every.sort;
  const called = (one) => one.caption.textContent.startsWith("Memory: throughput");
  const table = tables.find(called);
  const headings = [...table.querySelectorAll("th[data-column]")];
  const heading = headings.find((one) => one.textContent === "peakmark");
  const cells = (one) => bodyRows(table).map((row) => row.cells[one.dataset.column]);
  const values = () => cells(heading).map((cell) => cell.dataset.v ?? null);
  const press = () => heading.querySelector("button").click();
  found.before = values();
  press(); found.up = [values(), heading.getAttribute("aria-sort")];
  press(); found.down = [values(), heading.getAttribute("aria-sort")];
  press(); found.back = [values(), heading.getAttribute("aria-sort")];
  const block = headings.find((one) => one.textContent.startsWith("Block"));
  block.querySelector("button").click();
  found.blocks = [...new Set(cells(block).map((cell) => cell.textContent))];
}
{
  const found = every.filter;
  const type = (words) => { filter.value = words; filter.dispatchEvent(new Event("input")); };
  const visible = () => tables.flatMap(bodyRows).filter((row) => row.offsetParent !== null);
  const shown = () => visible().map((row) => row.dataset.text);
  found.all = shown().length;
  type("copy 1 mib"); found.some = shown(); found.status = status.textContent;
  const captions = tables.map((table) => table.caption.textContent);
  found.count = captions.find((text) => text.startsWith("Memory: throughput"));
  type("no such row"); found.none = shown().length;
  type("-copy"); found.without = shown();
  type(""); found.again = shown().length; found.quiet = status.textContent;
}
{
  const found = every.zoom;
  const button = document.querySelectorAll("figure button.zoom")[0];
  button.click();
  found.open = dialog.open; found.title = dialog.querySelector("span").textContent;
  found.same = picture.src === button.querySelector("img").src;
  const width = () => parseFloat(picture.style.width);
  const press = (key) => dialog.dispatchEvent(new KeyboardEvent("keydown", { key }));
  const whole = width();
  dialog.querySelector("[data-zoom=in]").click(); found.larger = width() > whole * 1.4;
  press("-"); press("-"); found.smaller = width() < whole * 0.9;
  press("0"); found.fit = Math.abs(width() - whole) < 1 && whole <= stage.clientWidth + 1;
  stage.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
  found.wheel = width() > whole * 1.1;
  dialog.querySelector("form button:last-child").click(); found.closed = !dialog.open;
  const ground = () => getComputedStyle(document.body).backgroundColor;
  const before = ground();
  document.getElementById("theme").click();
  found.theme = [before, ground(), root.dataset.theme];
}
const written = tables.find((one) => one.caption.textContent.startsWith("Memory: throughput"));
const drawn = document.querySelector("figure img");
every.copies = { markdown: markdown(written), latex: latex(written) };
drawn.decode().then(() => {
  every.copies.png = png(drawn).slice(0, 22);
  document.title = "found" + JSON.stringify(every);
});
