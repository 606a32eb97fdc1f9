"use strict";
// The page reads without this: it sorts tables, searches in long ones, shows values under the pointer, and unfolds what has room, and
// everything for print.

// A cell as something to sort by: its number without interval and sign of doubt, or its text.
function sortKey(cell) {
  const text = cell ? cell.textContent.trim() : "";
  if (!cell || !cell.classList.contains("n")) return text;
  const number = parseFloat(text.replace(/^~/, "").replace("−", "-").replace("+", ""));
  return Number.isNaN(number) ? null : number;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => ({ row, key: sortKey(row.cells[column]) }));
  // What has no value stays below, whichever the direction.
  const empty = (key) => key === null || key === "";
  rows.sort((a, b) => {
    if (empty(a.key) || empty(b.key)) return empty(a.key) - empty(b.key);
    return compareKeys(a.key, b.key) * (descending ? -1 : 1);
  });
  body.append(...rows.map((r) => r.row));
}

function makeSortable(table) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(table, column, descending);
    });
  });
}

function makeSearchable(box) {
  const rows = Array.from(box.querySelector("tbody").rows, (row) => ({ row, text: row.textContent.toLowerCase() }));
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("span");
  input.type = "search";
  label.className = "search";
  label.append("Search", input, count);
  count.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  });
  box.prepend(label);
}

// Values under the pointer, at once; the browser's own labels, which come late, are taken away while these are there.
function showValues() {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const texts = new Map();
  for (const area of document.querySelectorAll(".hint")) {
    const title = area.querySelector("title");
    texts.set(area, title.textContent);
    title.remove();
  }
  document.addEventListener("pointermove", (event) => {
    const text = texts.get(event.target);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const width = document.documentElement.clientWidth;
    const left = Math.min(event.pageX + 14, width - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${event.pageY + 16}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
}

// A link into a folded part opens it.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}

let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll("details:not([open])"));
  folded.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));
addEventListener("hashchange", openTarget);

// What a phone folds has room on a wide page.
if (matchMedia("(min-width: 781px)").matches) document.querySelectorAll("details.wide").forEach((details) => { details.open = true; });

document.querySelectorAll("table.sorted").forEach(makeSortable);
document.querySelectorAll(".table.searched").forEach(makeSearchable);
showValues();
openTarget();
