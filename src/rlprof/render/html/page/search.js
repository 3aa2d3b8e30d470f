// One search for the whole page: it filters findings and tables, and marks boxes.

function search(charts) {
  const input = document.getElementById("search");
  const shown = document.getElementById("search-count");
  let others, findings, operations, places, groups;

  /** Find what can be searched: the page may have new text. */
  function gather() {
    others = document.getElementById("others");
    findings = Array.from(document.querySelectorAll(".finding"));
    operations = Array.from(document.querySelectorAll("#operations-table tbody tr"));
    places = Array.from(document.querySelectorAll("#tree tbody tr"));
    groups = Array.from(document.querySelectorAll("#lines-table tbody"));
  }

  /** Hide what does not have all words. Returns how many are left. */
  function filter(elements, words, textOf) {
    let left = 0;
    for (const one of elements) {
      const found = textOf(one).toLowerCase();
      one.hidden = !words.every((word) => found.includes(word));
      left += one.hidden ? 0 : 1;
    }
    return left;
  }

  function run() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const left = [["finding", filter(findings, words, (one) => one.textContent)]];
    left.push(["operation", filter(operations, words, (row) => `${row.cells[0].textContent} ${row.dataset.category}`)]);
    filter(places, words, (row) => row.cells[0].textContent);
    let lines = 0;
    for (const group of groups) {
      const [, ...rows] = group.rows; // the first has the name of the operation
      const found = filter(rows, words, (row) => `${group.dataset.name} ${row.textContent}`);
      group.hidden = !found;
      lines += found;
    }
    left.push(["line", lines]);
    left.push(["box", charts.reduce((sum, chart) => sum + chart.mark(words), 0)]);
    if (others) {
      const inside = findings.some((one) => others.contains(one) && !one.hidden);
      others.hidden = !inside;
      if (words.length) others.open = inside;
    }
    const text = left.filter(([, number]) => number).map(([noun, number]) => many(number, noun).replace("boxs", "boxes"));
    shown.textContent = !words.length ? "" : text.length ? text.join(", ") : "nothing found";
  }

  input.addEventListener("input", run);
  return {
    update() {
      gather();
      if (input.value) run();
    },
  };
}
