"use strict";
// The page is complete without this: it only reads out marks, lights up a cell everywhere, sorts tables.
(() => {
  const readout = document.getElementById("readout");

  // What the browser would show late and small, shown at once. The text stays with the mark.
  for (const title of document.querySelectorAll("svg title")) {
    const mark = title.parentNode;
    mark.dataset.says = title.textContent;
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const say = (event, text) => {
    readout.textContent = text;
    readout.hidden = false;
    const { width, height } = readout.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
    const below = event.clientY + 18;
    const top = below + height > innerHeight ? event.clientY - height - 12 : below;
    readout.style.left = `${Math.max(8, left)}px`;
    readout.style.top = `${Math.max(8, top)}px`;
  };

  // A click holds a cell; otherwise it is the one beneath the pointer.
  let held = null;
  let lit = null;
  const light = (cell) => {
    if (cell === lit) return;
    for (const old of document.querySelectorAll(".lit")) old.classList.remove("lit");
    lit = cell;
    if (cell === null) return;
    for (const element of document.querySelectorAll(`[data-cell="${cell}"]`)) element.classList.add("lit");
  };
  const cellOf = (event) => event.target.closest?.("[data-cell]")?.dataset.cell ?? null;
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-says]");
    if (mark) say(event, mark.dataset.says);
    else readout.hidden = true;
    light(held ?? cellOf(event));
  });
  document.addEventListener("pointerleave", () => { readout.hidden = true; });
  document.addEventListener("click", (event) => {
    if (event.target.closest("a, button, summary")) return;
    const cell = cellOf(event);
    held = cell === held ? null : cell;
    light(held ?? cell);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    held = null;
    light(null);
    readout.hidden = true;
  });

  // Says so where something goes on to the side.
  const sides = () => {
    for (const hint of document.querySelectorAll(".swipe")) {
      const box = hint.nextElementSibling;
      hint.classList.toggle("needed", box.scrollWidth > box.clientWidth + 1);
    }
  };
  sides();
  addEventListener("resize", sides);
  document.addEventListener("toggle", sides, true);

  // Effects of one factor, figure or verdict: pictures dim the others, the table of verdicts leaves them out.
  const filter = document.getElementById("filter");
  if (filter) {
    filter.hidden = false;
    const selects = [...filter.querySelectorAll("select")];
    filter.addEventListener("change", () => {
      const wanted = selects.filter((select) => select.value).map((select) => [select.dataset.by, select.value]);
      const fits = (data, keys) => wanted.every(([by, value]) => !keys.includes(by) || data[by] === value);
      for (const effect of document.querySelectorAll("svg .effect")) {
        effect.classList.toggle("dim", !fits(effect.dataset, ["factor", "figure", "verdict"]));
      }
      for (const field of document.querySelectorAll(".verdicts [data-figure]")) {
        field.hidden = !fits(field.dataset, ["figure"]);
      }
      for (const body of document.querySelectorAll(".verdicts tbody")) {
        const rows = [...body.rows].filter((row) => !row.classList.contains("contrast"));
        for (const row of rows) {
          const fields = [...row.querySelectorAll("td")].filter((field) => !field.hidden);
          row.hidden = !fields.some((field) => fits(field.dataset, ["verdict"]));
          for (const field of fields) field.classList.toggle("dim", !fits(field.dataset, ["verdict"]));
        }
        body.hidden = !fits(body.dataset, ["factor"]) || rows.every((row) => row.hidden);
      }
    });
  }

  // Figures by size, what has none last; words by the alphabet.
  const figure = (text) => {
    const found = /-?\d+(\.\d+)?/.exec(text);
    return found ? Number(found[0]) : null;
  };
  const compare = (number) => (a, b) => {
    if (!number) return a.localeCompare(b, "en", { numeric: true });
    const [x, y] = [figure(a), figure(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return x - y;
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const order = compare(head.classList.contains("n"));
        const body = table.tBodies[0];
        const text = (row) => row.cells[column].textContent;
        const rows = [...body.rows].sort((a, b) => order(text(a), text(b)) * (down ? -1 : 1));
        body.append(...rows);
      });
    });
  }
})();
