// The HTML report in frames as wide as a phone and as a laptop, since a browser's own window cannot be made that narrow.
// `page` is the report's text; what is found becomes the title.
const frame = (width) => {
  const made = document.createElement("iframe");
  made.style.cssText = `width:${width}px;height:800px;border:0`;
  made.srcdoc = page;
  document.body.append(made);
  return new Promise((done) => made.addEventListener("load", () => done(made.contentDocument)));
};
const found = {};
const measure = async () => {
  const narrow = await frame(390);
  found.narrow = narrow.documentElement.scrollWidth;
  const wider = (one) => one.scrollWidth > one.clientWidth;
  found.scrolled = [...narrow.querySelectorAll(".scroll")].filter(wider).map((one) => one.getAttribute("aria-label"));
  found.overlaps = [...narrow.querySelectorAll(".facts th, .stacked td")].filter(wider).map((one) => one.textContent);
  const input = narrow.getElementById("filter");
  const style = getComputedStyle(input);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const button = 20; // pixels that a field for searching keeps for the button that empties it
  const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - button;
  found.hint = pen.measureText(input.placeholder).width / room;
  const wide = await frame(1000);
  found.wide = wide.documentElement.scrollWidth;
  found.bar = wide.querySelector(".bar").getBoundingClientRect().height;
  found.room = parseFloat(getComputedStyle(wide.documentElement).scrollPaddingTop);
  const laptop = await frame(1200);
  const regions = [...laptop.querySelectorAll(".scroll")];
  found.cut = regions.filter((one) => one.scrollWidth > one.clientWidth).length;
  document.title = "found" + JSON.stringify(found);
};
measure();
