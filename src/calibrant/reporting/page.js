"use strict";
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const boxes = [...document.querySelectorAll(".legend input")];
  const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
  const drawn = new Map();
  /* Where a spec holds colours; elsewhere a text that reads like one is a name from the data. */
  const colored = new Set(["color", "fill", "stroke", "range", "value", "background", "labelColor", "titleColor",
    "gridColor", "domainColor", "tickColor"]);

  /* A spec as Vega-Lite wants it: rows spelled out, colours of the theme, hidden series left out. */
  function unpacked(value, dark, key) {
    if (typeof value === "string") {
      return dark && colored.has(key) && Object.hasOwn(data.colors, value) ? data.colors[value] : value;
    }
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map((item) => unpacked(item, dark, key));
    if ("packed" in value) {
      const [names, ...rows] = value.packed;
      const at = names.indexOf("series");
      return rows
        .filter((row) => at < 0 || hidden.size === boxes.length || !hidden.has(row[at]))
        .map((row) => Object.fromEntries(names.map((name, k) => [name, row[k]])));
    }
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unpacked(item, dark, name)]));
  }

  async function draw(holder) {
    const spec = unpacked(data.charts[holder.dataset.chart], isDark());
    const side = Math.max(220, Math.min(560, holder.parentElement.clientWidth - 64));
    spec.width = side;
    spec.height = Math.round(side * 0.82);
    spec.background = null;
    spec.description = holder.getAttribute("aria-label");  // else Vega puts its own words there
    const config = { aria: false, font: "system-ui, sans-serif", axis: { labelFontSize: 12, titleFontSize: 13 } };
    const result = await vegaEmbed(holder, spec, { ast: true, renderer: "svg", actions: false, config });
    drawn.get(holder)?.finalize();
    drawn.set(holder, result);
    holder.classList.add("drawn");
    performance.mark("drawn");
    for (const slider of holder.querySelectorAll("input[type=range]")) {
      const said = holder.parentElement.querySelector("output");
      const say = () => {
        said.textContent = data.steps[slider.value - slider.min];
        slider.setAttribute("aria-valuetext", said.textContent);
      };
      slider.addEventListener("input", say);
      say();
    }
  }
  const redraw = () => Promise.all([...drawn.keys()].map(draw));

  for (const holder of document.querySelectorAll(".interactive")) {
    const fold = holder.closest("details");
    if (!fold || fold.open) draw(holder);
    else fold.addEventListener("toggle", () => draw(holder), { once: true });
  }
  for (const box of boxes) {
    box.addEventListener("change", () => {
      hidden[box.checked ? "delete" : "add"](box.value);
      redraw();
    });
  }

  const button = document.querySelector("button.theme");
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
    redraw();
  });
  prefersDark.addEventListener("change", () => { label(); redraw(); });
  label();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) { width = innerWidth; redraw(); }
  });

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const order = down ? -1 : 1;
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const number = heads[column].classList.contains("number");
      const compare = (a, b) => {
        if (!number) return order * key(a).localeCompare(key(b));
        const [x, y] = [Number(key(a)), Number(key(b))];
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);  // what is no number comes last
        return x === y ? 0 : x < y ? -order : order;  // infinite ones have no difference
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    }));
  }

  const search = document.querySelector(".search");
  if (search) {
    const filter = document.querySelector(".filter");
    const rows = [...document.querySelectorAll("table.sortable tbody tr")];
    const said = document.querySelector(".filters output");
    const sift = () => {
      const text = search.value.toLowerCase();
      for (const row of rows) {
        const named = row.cells[0].textContent.toLowerCase().includes(text);
        row.hidden = !named || (filter.value !== "" && row.cells[row.cells.length - 1].textContent.trim() !== filter.value);
      }
      const shown = rows.filter((row) => !row.hidden).length;
      said.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
    };
    search.addEventListener("input", sift);
    filter.addEventListener("change", sift);
  }

  const folds = () => [...document.querySelectorAll("details:not(.explore):not(.as-table)")];
  let closed = [];
  addEventListener("beforeprint", () => { closed = folds().filter((fold) => !fold.open); closed.forEach((fold) => { fold.open = true; }); });
  addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));
})();
