// The operations table: a click on a column sorts it, a click on a name shows the durations of its calls.

function operationsTable(table, showDistribution) {
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headings = Array.from(table.tHead.rows[0].cells);

  function sort(column, descending) {
    const asText = headings[column].firstElementChild.dataset.kind === "text";
    const keys = new Map(rows.map((row) => {
      const cell = row.cells[column];
      return [row, asText ? cell.textContent : cell.dataset.v === undefined ? null : Number(cell.dataset.v)];
    }));
    const sign = descending ? -1 : 1;
    rows.sort((one, other) => {
      const [left, right] = [keys.get(one), keys.get(other)];
      // Values that were not measured always come last.
      if (left === null || right === null) return (left === null) - (right === null);
      return sign * (asText ? left.localeCompare(right, "en") : left - right);
    });
    body.append(...rows);
    headings.forEach((heading, place) => {
      heading.setAttribute("aria-sort", place !== column ? "none" : descending ? "descending" : "ascending");
    });
  }

  headings.forEach((heading, column) => {
    const button = heading.firstElementChild;
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      // Names start with A, figures with the largest. A second click reverses the order.
      sort(column, now === "none" ? button.dataset.kind === "number" : now === "ascending");
    });
  });

  body.addEventListener("click", (event) => {
    const name = event.target.closest(".link");
    if (name && showDistribution(name.textContent)) document.getElementById("durations").scrollIntoView();
  });
}
