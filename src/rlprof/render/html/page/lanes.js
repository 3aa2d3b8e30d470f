// One strip per lane over the iterations: the height of a colour is the part of the time that the lane worked at it.

const LEAST_ITERATIONS = 2; // in the closest view

function lanes() {
  const element = document.getElementById("lanes-chart");
  const controls = document.getElementById("lanes-controls");
  const keys = document.getElementById("lanes-keys");
  const ranges = Array.from(controls.querySelectorAll("[data-range]"));
  const all = { run: null, recent: null };
  let range = "run";
  let data = null;
  let named, points, ends;
  let pxPerIteration = 1;

  const limits = () => [ends[0], ends[2 * points - 1], Math.min(LEAST_ITERATIONS, ends[2 * points - 1] - ends[0])];
  const view = zoom(element, controls, limits, () => pxPerIteration, draw);
  const share = (ns, point) => (data.wall[point] ? ns / data.wall[point] : 0);

  function measure() {
    data = all[range];
    points = data.first.length;
    ends = endsOf(data);
    named = new Map();
    for (const strip of data.strips) {
      for (const area of strip.areas) named.set(area.name, area.category);
    }
    view.show();
  }

  function draw() {
    if (!data) return;
    const strip = Math.max(34, Math.min(110, 240 / data.strips.length)); // few lanes have more room
    const title = 18;
    const left = 8;
    const height = data.strips.length * (strip + title) + 44;
    const { drawn, width } = sheet(element, height);
    const x = view.now();
    const across = { left, width: width - left - 10, x };
    pxPerIteration = across.width / (x[1] - x[0]);
    const zoomed = x[0] > ends[0] || x[1] < ends[2 * points - 1];
    element.classList.toggle("zoomed", zoomed);
    data.strips.forEach((lane, row) => {
      const box = panel({ ...across, top: row * (strip + title) + title, height: strip, y: [0, 1] });
      const worked = lane.areas.map(({ ns }) => ns.map(share));
      const total = lane.areas.flatMap(({ ns }) => ns).reduce((sum, one) => sum + one, 0);
      const busy = total / (data.wall.reduce((sum, one) => sum + one, 0) || 1);
      const label = `${lane.name}: ${lane.kind}, at work ${Math.round(100 * Math.min(1, busy))}% of the time`;
      drawn.append(text(left, box.top - 5, fitting(label, box.width, 12), { fill: css("--ink"), class: "lane" }));
      const frame = { x: box.left, y: box.top, width: box.width, height: strip };
      drawn.append(make("rect", { ...frame, fill: css("--panel"), stroke: css("--line") }));
      // An inner sheet cuts off what a zoomed view does not show.
      const viewBox = `${box.left} ${box.top} ${box.width} ${strip}`;
      const inner = zoomed ? make("svg", { ...frame, viewBox }) : drawn;
      if (zoomed) drawn.append(inner);
      stacked(worked, points).forEach(({ lower, upper }, place) => {
        const flat = (side) => twice(side.map((value) => box.y(Math.min(1, value))));
        const { name, category } = lane.areas[place];
        const path = between(ends.map(box.x), flat(upper), flat(lower));
        inner.append(make("path", { d: path, fill: operationColour(name, category), class: "area" }));
      });
    });
    const box = panel({ ...across, top: 0, height: height - 44, y: [0, 1] });
    const inside = (mark) => mark >= Math.max(1, x[0]) && mark <= x[1];
    const marks = ticks(x[0], x[1], narrow.matches ? 5 : 12, true).filter(inside);
    bottomAxis(drawn, box, "iteration", marks.length ? marks : [data.first[0]]);
    const seen = data.first.map((_, point) => point).filter((point) => {
      return ends[2 * point + 1] > x[0] + 1e-9 && ends[2 * point] < x[1] - 1e-9;
    });
    const within = (value) => box.x(Math.max(x[0], Math.min(x[1], value)));
    const sides = seen.flatMap((point) => [within(ends[2 * point]), within(ends[2 * point + 1])]);
    const middles = seen.map((_, place) => (sides[2 * place] + sides[2 * place + 1]) / 2);
    pointer(element, drawn, middles, 0, box.bottom, (place) => {
      const point = seen[place];
      return [iterationsOf(data, point), data.strips.flatMap((lane) => described(lane, point))];
    }, sides);
    const shown = Array.from(named).slice(0, 24);
    legend(document.getElementById("lanes-legend"), shown.map(([name, category]) => {
      return { name: shorter(name, 44), title: name, colour: operationColour(name, category) };
    }));
  }

  /** What a lane did at a point: its name, then its largest operations. */
  function described(lane, point) {
    const most = data.strips.length > 4 ? 1 : 4;
    const largest = lane.areas.map(({ name, category, ns }) => [100 * share(ns[point], point), name, category])
      .filter(([part]) => part >= 0.5).sort(([one], [other]) => other - one).slice(0, most);
    const lines = largest.map(([part, name, category]) => {
      return { text: `${shorter(name, 34)} ${part.toFixed(0)}%`, colour: operationColour(name, category) };
    });
    if (most === 1) return lines.length ? [{ ...lines[0], text: `${shorter(lane.name, 24)}: ${lines[0].text}` }] : [];
    return [`${shorter(lane.name, 34)}${lines.length ? "" : ": waiting"}`, ...lines];
  }

  for (const button of ranges) {
    button.addEventListener("click", () => {
      range = button.dataset.range;
      ranges.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      view.whole();
      measure();
      draw();
    });
  }
  register(element, draw);
  return {
    /** `recent` has the last iterations one by one, where the run merges several into a point. */
    update(run, recent) {
      Object.assign(all, { run, recent });
      present(controls, Boolean(run));
      present(keys, Boolean(run));
      if (!run) {
        data = null;
        nothing(element, "No iterations were marked, so there is no timeline. Mark them with profiler.iteration().");
        return;
      }
      something(element);
      if (!recent) range = "run";
      ranges.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.range === range)));
      present(ranges[0].parentElement, Boolean(recent));
      if (recent) ranges[1].textContent = `last ${whole(recent.last.at(-1) - recent.first[0] + 1)} iterations`;
      measure();
      draw();
      const { hidden } = data;
      const note = hidden ? `Not drawn: ${many(hidden, "lane")} with less work.` : "";
      document.getElementById("lanes-hidden").textContent = note;
    },
  };
}

/** `iteration 3`, or `iterations 21 to 30` where a point stands for several. */
function iterationsOf({ first, last }, point) {
  const [from, to] = [whole(first[point]), whole(last[point])];
  return from === to ? `iteration ${from}` : `iterations ${from} to ${to}`;
}
