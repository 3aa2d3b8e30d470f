// The page of all runs: a table that keeps itself up to date.

const main = document.getElementById("home");
const body = document.querySelector("#runs tbody");
const input = document.getElementById("filter");
const button = document.getElementById("compare");
const headings = Array.from(document.querySelectorAll("#runs [data-key]"));
const problem = document.getElementById("home-problem");

const runs = new Map();
const rows = new Map();
const view = addressed();
let chosen = []; // folders, in the order in which they were ticked
let missing = 0;
let since = main.dataset.since;
input.value = view.filter;

function rowOf(run) {
  const text = JSON.stringify(run);
  let known = rows.get(run.folder);
  if (!known) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.name = run.folder; // so that a browser that restores the page ticks the same runs
    box.setAttribute("aria-label", `Compare ${run.folder}`);
    box.addEventListener("change", () => choose(run.folder, box.checked));
    known = { row: document.createElement("tr"), box, text: "" };
    rows.set(run.folder, known);
  }
  if (known.text !== text) {
    known.text = text;
    const focused = known.row.contains(document.activeElement) ? document.activeElement.tagName : "";
    known.box.disabled = run.problem !== null || run.wall_ns === null;
    fillRow(known.row, run, known.box);
    if (focused) known.row.querySelector(focused.toLowerCase())?.focus();
  }
  return known;
}

function choose(folder, ticked) {
  chosen = chosen.filter((one) => one !== folder);
  if (ticked) chosen.push(folder);
  while (chosen.length > 2) rows.get(chosen.shift()).box.checked = false;
  showChosen();
}

function showChosen() {
  chosen = chosen.filter((folder) => runs.has(folder));
  const texts = chosen.map((folder, place) => {
    return `${"AB"[place]}: ${folder}${rows.get(folder).row.isConnected ? "" : " (hidden by the filter)"}`;
  });
  document.getElementById("chosen").textContent = texts.length ? texts.join("   ") : "Tick two runs to compare them.";
  button.disabled = chosen.length !== 2;
}

/** Browsers restore ticks after this script has drawn the table: on the way back, and when the page is loaded again. */
function takeTicks() {
  const ticked = Array.from(rows.keys()).filter((folder) => rows.get(folder).box.checked);
  const kept = chosen.filter((folder) => ticked.includes(folder));
  chosen = [...kept, ...ticked.filter((folder) => !kept.includes(folder))];
  while (chosen.length > 2) rows.get(chosen.pop()).box.checked = false;
  showChosen();
}

function draw() {
  const words = view.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = Array.from(runs.values()).filter((run) => {
    const text = textOf(run);
    return words.every((word) => text.includes(word));
  }).sort(compareRuns(view));
  const names = differing(shown);
  const elements = shown.map((run) => {
    const { row } = rowOf(run);
    fillDifferences(row, run, names);
    return row;
  });
  const focused = document.activeElement;
  // Moving a row would take its focus away, so the table is put together anew only if its order changes.
  if (elements.length !== body.rows.length || elements.some((row, place) => body.rows[place] !== row)) {
    body.replaceChildren(...elements);
    if (focused && document.contains(focused)) focused.focus({ preventScroll: true });
  }
  document.getElementById("runs").classList.toggle("same", !names.length);
  showCount(shown.length);
  showChosen();
}

function showCount(count) {
  const all = runs.size;
  const text = count === all ? many(all, "run") : `${whole(count)} of ${many(all, "run")}`;
  const shown = missing ? `${text}, reading ${whole(missing)} more` : text;
  const element = document.getElementById("shown");
  if (element.textContent !== shown) element.textContent = shown;
  const none = document.getElementById("none");
  document.getElementById("runs").parentElement.hidden = !count;
  none.hidden = count > 0;
  document.getElementById("tools").hidden = !all && !missing;
  none.textContent = all || missing
    ? "No run has all of these words."
    : "There is no run in this folder yet. Record one: rlprof run train.py";
}

function take({ rows: changed, order, missing: left }) {
  for (const run of changed) runs.set(run.folder, run);
  const present = new Set(order);
  for (const folder of Array.from(runs.keys())) {
    if (present.has(folder)) continue;
    runs.delete(folder);
    rows.delete(folder);
  }
  missing = left;
  draw();
}

function onRuns(news, id) {
  since = id;
  take(news);
}

function showOrder() {
  for (const heading of headings) {
    const sorted = heading.dataset.key === view.key;
    const way = view.descending ? "descending" : "ascending";
    heading.parentElement.setAttribute("aria-sort", sorted ? way : "none");
  }
}

for (const heading of headings) {
  heading.addEventListener("click", () => {
    const { key } = heading.dataset;
    view.descending = view.key === key ? !view.descending : DESCENDING_FIRST.has(key);
    view.key = key;
    toAddress(view);
    showOrder();
    draw();
  });
}
input.addEventListener("input", () => {
  view.filter = input.value;
  toAddress(view);
  draw();
});
button.addEventListener("click", () => {
  const [a, b] = chosen;
  location.href = `/compare?${new URLSearchParams({ a, b })}`;
});

showOrder();
take(JSON.parse(document.getElementById("runs-data").textContent));
addEventListener("pageshow", takeTicks);
follow("/events", () => since, { runs: onRuns }, (text) => {
  problem.hidden = !text;
  problem.textContent = text;
});
