"use strict";
// Sorts and filters tables, and opens what a link leads into. The page is whole without it.
const SECONDS = { h: 3600, min: 60, s: 1 };
const value = (row, column) => {
  const cell = row.querySelectorAll("th, td")[column];
  const words = cell.innerText.trim();
  if (cell.matches("th, .words")) return words;
  const spans = [...words.matchAll(/([\d.]+) (h|min|s)\b/g)];
  if (spans.length) return spans.reduce((sum, [, count, unit]) => sum + count * SECONDS[unit], 0);
  const number = parseFloat(words.replace("−", "-").replace(/[<>,≤+[]/g, ""));
  return Number.isNaN(number) ? words : number;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
const sort = (table, groups, column, head) => {
  const down = head.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = groups.map((group) => [value(group, column), group]);
  keyed.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
  keyed[0][1].parentNode.append(...keyed.map((pair) => pair[1]));
};
document.querySelectorAll("table.sortable").forEach((table) => {
  // What belongs together is a body of its own, or else a row.
  const bodies = [...table.tBodies];
  const groups = bodies.length > 1 ? bodies : [...bodies[0].rows];
  if (groups.length < 4) return;
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, groups, column, head));
    head.append(button);
  });
  if (groups.length < 12) return;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter rows";
  search.setAttribute("aria-label", `Filter rows: ${table.caption.textContent}`);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    groups.forEach((group) => {
      const text = group.textContent.toLowerCase();
      group.hidden = !words.every((word) => text.includes(word));
    });
  });
  table.parentNode.before(search);
});
const unfold = () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  const details = target && target.querySelector("details");
  if (details) details.open = true;
};
addEventListener("hashchange", unfold);
// On paper nothing can be unfolded; a long page keeps folded what its reader left folded.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("body:not(.long) details:not([open])")];
  folded.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => folded.forEach((details) => (details.open = false)));
unfold();
