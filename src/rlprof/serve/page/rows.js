// One row of the table of runs. Its cells are made anew only if the run has changed.

const MOST_DIFFERENCES = 6;

function cell(text, className = "", title = "") {
  const made = document.createElement("td");
  made.textContent = text;
  made.className = className;
  if (title) made.title = title;
  return made;
}

function when(seconds) {
  const [date, today] = [new Date(seconds * 1000), new Date()];
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return [date.toDateString() === today.toDateString() ? `today ${time}` : `${day} ${time}`, `${day} ${time}`];
}

function stateOf(run) {
  const badge = document.createElement("span");
  const quiet = run.state === "finished";
  badge.className = `badge state ${run.running ? "running" : quiet ? "finished" : "stopped"}`;
  badge.textContent = run.state;
  const made = cell("");
  made.append(badge);
  return made;
}

function nameCell(run) {
  const made = document.createElement("th");
  made.scope = "row";
  const link = document.createElement("a");
  link.href = `/run/${encodeURIComponent(run.folder)}`;
  link.textContent = run.folder;
  made.append(run.problem ? run.folder : link);
  if (run.program) {
    const program = document.createElement("small");
    program.textContent = run.program;
    program.title = run.program;
    made.append(program);
  }
  return made;
}

function fillRow(row, run, box) {
  const first = cell("");
  first.append(box);
  if (run.problem) {
    const problem = cell(`${run.problem.replace(/\.?$/, ".")}`, "problem");
    problem.colSpan = 5;
    row.replaceChildren(first, nameCell(run), stateOf(run), problem);
    return;
  }
  const [shown, title] = run.started ? when(run.started) : ["", ""];
  const share = run.largest_share === null ? "" : ` ${run.largest_share.toFixed(1)}%`;
  row.replaceChildren(
    first, nameCell(run), stateOf(run), cell(shown, "", title),
    cell(run.wall_ns === null ? "-" : duration(run.wall_ns), "figure"),
    cell(run.steps_per_second === null ? "-" : rate(run.steps_per_second), "figure"),
    cell(run.largest === null ? "-" : `${run.largest}${share}`, "largest", run.largest || ""),
    cell("", "differs"),
  );
}

function fillDifferences(row, run, names) {
  const made = row.querySelector(".differs");
  if (!made) return;
  const known = names.filter((name) => Object.hasOwn(run.settings, name));
  const texts = known.map((name) => `${name}=${run.settings[name]}`);
  const shown = texts.slice(0, MOST_DIFFERENCES).join("  ");
  const text = texts.length > MOST_DIFFERENCES ? `${shown}  and ${texts.length - MOST_DIFFERENCES} more` : shown;
  if (made.textContent !== text) made.textContent = text;
  made.title = texts.join("\n");
}
