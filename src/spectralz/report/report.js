"use strict";
(() => {
  // Headings become buttons here and not in the page, so that without a script there is no button that does nothing.
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  const compare = (a, b, isNumber, sign) => {
    if (!isNumber) return sign * a.localeCompare(b, "en", { numeric: true });
    if (a === "" || b === "") return (a === "") - (b === ""); // what is not there comes last, either way
    return sign * (Number(a) - Number(b));
  };

  const sort = (table, heading, column) => {
    const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const isNumber = heading.classList.contains("number");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column), isNumber, sign));
    body.append(...rows);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      button.addEventListener("click", () => sort(table, heading, column));
      heading.replaceChildren(button);
    });
  }

  // On paper nothing can be opened: open everything for printing, and put it back.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
})();
