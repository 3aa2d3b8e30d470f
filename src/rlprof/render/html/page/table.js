// The operations table: sorted by a click on a column, filtered by what is typed.

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
      // What was not measured is neither large nor small: it comes last either way.
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
      // Names from A, figures from the largest; the second click turns it round.
      sort(column, now === "none" ? button.dataset.kind === "number" : now === "ascending");
    });
  });

  const filter = document.getElementById("filter");
  const shown = document.getElementById("filter-count");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = `${row.cells[0].textContent} ${row.dataset.category}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      left += row.hidden ? 0 : 1;
    }
    shown.textContent = `${left < rows.length ? `${whole(left)} of ` : ""}${many(rows.length, "operation")}`;
  });

  body.addEventListener("click", (event) => {
    const name = event.target.closest(".link");
    if (name && showDistribution(name.textContent)) document.getElementById("durations").scrollIntoView();
  });
}
