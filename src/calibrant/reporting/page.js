"use strict";
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";

  const button = document.querySelector("button.theme");
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  prefersDark.addEventListener("change", label);
  label();
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      const order = down ? -1 : 1;
      const number = heads[column].classList.contains("number");
      const last = (text) => text.replaceAll(",", "").match(/∞|-?[\d.]+(e-?\d+)?$/)?.[0];  // of an interval its end
      const key = (row) => {
        const text = row.cells[column].textContent.trim();
        return number ? (last(text) ?? "NaN").replace("∞", "Infinity") : text;
      };
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

  const folds = () => [...document.querySelectorAll("details:not(.as-table)")];
  let closed = [];
  addEventListener("beforeprint", () => { closed = folds().filter((fold) => !fold.open); closed.forEach((fold) => { fold.open = true; }); });
  addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));
})();
