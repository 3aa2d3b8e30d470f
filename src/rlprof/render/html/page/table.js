// The operations table: a click on a column sorts it, a click on a name shows the durations of its calls.

function operationsTable(showDistribution) {
  let body, rows, headings;
  let order = null; // the column that was chosen: [its name, descending]

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

  function onHeading(column) {
    const now = headings[column].getAttribute("aria-sort");
    const button = headings[column].firstElementChild;
    // Names start with A, figures with the largest. A second click reverses the order.
    order = [button.textContent, now === "none" ? button.dataset.kind === "number" : now === "ascending"];
    sort(column, order[1]);
  }

  return {
    /** Sort a table that is new on the page, as the one before it was sorted. */
    update(table) {
      if (!table || table.tBodies[0] === body) return;
      body = table.tBodies[0];
      rows = Array.from(body.rows);
      headings = Array.from(table.tHead.rows[0].cells);
      headings.forEach((heading, column) => {
        heading.firstElementChild.addEventListener("click", () => onHeading(column));
      });
      body.addEventListener("click", (event) => {
        const name = event.target.closest(".link");
        if (name && showDistribution(name.textContent)) document.getElementById("durations").scrollIntoView();
      });
      const column = order ? headings.findIndex((heading) => heading.textContent === order[0]) : -1;
      if (column >= 0) sort(column, order[1]);
    },
  };
}
