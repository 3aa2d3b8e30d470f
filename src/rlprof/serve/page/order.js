// The order and the filter of the runs. Both are in the address, so that a bookmark keeps them.

const SORTED_BY = new Set(["folder", "state", "started", "wall_ns", "steps_per_second", "largest"]);
const DESCENDING_FIRST = new Set(["started", "wall_ns", "steps_per_second"]);

function addressed() {
  const given = new URLSearchParams(location.search);
  const [key, way] = (given.get("sort") || "started-descending").split("-");
  if (!SORTED_BY.has(key)) return { filter: given.get("filter") || "", key: "started", descending: true };
  return { filter: given.get("filter") || "", key, descending: way !== "ascending" };
}

function toAddress({ filter, key, descending }) {
  const query = new URLSearchParams();
  if (filter) query.set("filter", filter);
  if (key !== "started" || !descending) query.set("sort", `${key}-${descending ? "descending" : "ascending"}`);
  const text = query.toString();
  history.replaceState(null, "", text ? `/?${text}` : "/");
}

/** Running ones first, then by the chosen column. What is unknown comes last. */
function compareRuns({ key, descending }) {
  const sign = descending ? -1 : 1;
  return (one, other) => {
    if (one.running !== other.running) return one.running ? -1 : 1;
    const [left, right] = [one[key] ?? null, other[key] ?? null];
    if (left === null || right === null) return (left === null) - (right === null);
    const order = typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right;
    return sign * order || (other.started || 0) - (one.started || 0);
  };
}

function textOf(run) {
  const settings = Object.entries(run.settings).map(([name, value]) => `${name}=${value}`);
  return [run.folder, run.name, run.state, run.program, run.largest, run.problem, ...settings].join(" ").toLowerCase();
}

/** Undefined if the run does not have it. Every object has a `constructor`, which is no setting. */
function settingOf({ settings }, name) {
  return Object.hasOwn(settings, name) ? settings[name] : undefined;
}

/** The settings in which the shown runs differ. */
function differing(runs) {
  const names = new Set(runs.flatMap(({ settings }) => Object.keys(settings)));
  const readable = runs.filter(({ name }) => name !== null);
  return Array.from(names).filter((name) => new Set(readable.map((run) => settingOf(run, name))).size > 1).sort();
}
