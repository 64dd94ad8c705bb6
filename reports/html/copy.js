// Tables to copy as Markdown or LaTeX, figures to save as PNG. The page needs no network for it.

function text(cell) {
  const copy = cell.cloneNode(true);
  for (const pad of copy.querySelectorAll(".pad, svg")) pad.remove();
  for (const end of copy.querySelectorAll("br")) end.replaceWith(" ");
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// A heading over several columns stands before each of theirs.

function headings(table) {
  const [first, second] = table.tHead.rows;
  const below = second ? [...second.cells].map(text) : [];
  const names = [];
  for (const heading of first.cells) {
    const name = text(heading);
    if (second && heading.rowSpan === 1) {
      for (const under of below.splice(0, heading.colSpan)) names.push(`${name}, ${under}`);
    } else {
      names.push(name);
    }
  }
  return names;
}

// The headings and the rows that the filter shows, without the column of drawn runs.

function lines(table) {
  const shown = bodyRows(table).filter((row) => !row.hidden);
  const all = [headings(table), ...shown.map((row) => [...row.cells].map(text))];
  const drawn = all[0].indexOf("Runs");
  return all.map((cells) => cells.filter((_, column) => column !== drawn));
}

function markdown(table) {
  const [names, ...rest] = lines(table).map((cells) => cells.map((cell) => cell.replace(/[\\|]/g, "\\$&")));
  const line = (cells) => `| ${cells.join(" | ")} |\n`;
  return line(names) + line(names.map(() => "---")) + rest.map(line).join("");
}

const special = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "×": "$\\times$", "µ": "$\\mu$", "→": "$\\to$" };

function latex(table) {
  const escaped = (cell) => cell.replace(/[\\~^×µ→]|[&%$#_{}]/g, (letter) => special[letter] ?? `\\${letter}`);
  const cells = lines(table);
  const [names, ...rest] = cells.map((line) => `${line.map(escaped).join(" & ")} \\\\\n`);
  const columns = "l".repeat(cells[0].length);
  return `\\begin{tabular}{${columns}}\n\\hline\n${names}\\hline\n${rest.join("")}\\hline\n\\end{tabular}\n`;
}

// A page opened from a folder may have no clipboard of its own: a field that is selected and copied works there too.

function copied(content) {
  const field = document.createElement("textarea");
  field.value = content;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function button(name, title, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "copy";
  made.textContent = name;
  made.title = title;
  made.addEventListener("click", () => action(made));
  return made;
}

function copyButton(table, name, write) {
  return button(name, `Copy this table as ${name}`, (made) => {
    made.textContent = copied(write(table)) ? "Copied" : "Not copied";
    setTimeout(() => (made.textContent = name), 1500);
  });
}

for (const table of tables) {
  const line = document.createElement("p");
  line.className = "copies";
  line.append(copyButton(table, "Markdown", markdown), copyButton(table, "LaTeX", latex));
  table.parentNode.after(line);
}

// A figure is drawn on white at twice its size, since print needs more pixels than a screen.

function png(image) {
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.getAttribute("width");
  canvas.height = 2 * image.getAttribute("height");
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

for (const image of document.querySelectorAll("figure img")) {
  const save = button("PNG", "Save this figure as PNG", async () => {
    await image.decode();
    const link = document.createElement("a");
    link.href = png(image);
    link.download = `${image.dataset.title}.png`;
    link.click();
  });
  image.closest("figure").append(save);
}
