"use strict";
// Sorting: a click on a heading of a sortable table. Numbers go down first, words up; empty cells stay last.
const valueOf = (row, column) => {
  const text = row.cells[column].textContent.replace("★", "").trim();
  const number = parseFloat(text.replaceAll(",", ""));
  return { text, number, isNumber: text !== "" && !Number.isNaN(number) };
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const values = [...body.rows].map((row) => valueOf(row, column)).filter((value) => value.text !== "");
    if (!head.textContent.trim() || values.length === 0) return;
    const areNumbers = values.every((value) => value.isNumber);
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const up = before === null ? !areNumbers : before === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sorted = [...body.rows].map((row) => [valueOf(row, column), row]);
      sorted.sort(([a], [b]) => {
        if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1;
        const order = areNumbers ? a.number - b.number : a.text.localeCompare(b.text);
        return up ? order : -order;
      });
      body.append(...sorted.map(([, row]) => row));
    });
  });
}
// Folding: one button for all of them; paper shows everything.
const folds = [...document.querySelectorAll("details")];
if (folds.length > 0) {
  const button = document.createElement("button");
  button.type = "button";
  button.id = "fold";
  const name = () => { button.textContent = folds.every((fold) => fold.open) ? "Fold all" : "Unfold all"; };
  button.addEventListener("click", () => {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
    name();
  });
  for (const fold of folds) fold.addEventListener("toggle", name);
  name();
  document.querySelector("nav").append(button);
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = folds.filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
  });
  window.addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
  // A link to something folded unfolds it.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target) for (const fold of target.querySelectorAll(":scope > details")) fold.open = true;
  };
  window.addEventListener("hashchange", reveal);
  reveal();
}
