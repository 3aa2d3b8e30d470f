// The accounts over the iterations, stacked: each point sums to its time. Below them, steps per second. A point is as
// wide as the iterations that it is the mean of, and nothing is drawn between two points.

function ledger() {
  const element = document.getElementById("ledger");
  const buttons = Array.from(document.querySelectorAll("[data-unit]"));
  let data = null;
  let points, iterations, middle, ends, merged, speeds, withSteps;
  const hidden = new Set();
  let unit = "percent";

  const share = (ns, point) => (data.wall[point] ? (100 * ns) / data.wall[point] : 0);
  const valueOf = (ns, point) => (unit === "percent" ? share(ns, point) : ns / iterations[point] / 1e6);

  function measure() {
    points = data.first.length;
    iterations = data.first.map((first, point) => data.last[point] - first + 1);
    middle = data.first.map((first, point) => (first + data.last[point]) / 2);
    ends = endsOf(data);
    merged = Math.max(...iterations);
    speeds = data.steps.map((steps, point) => (data.wall[point] ? (steps / data.wall[point]) * 1e9 : null));
    withSteps = data.steps.some((steps) => steps > 0);
  }

  function draw() {
    if (!data) return;
    const { drawn, width, height } = sheet(element, narrow.matches ? 400 : 440);
    const shown = data.areas.filter(({ name }) => !hidden.has(name));
    const sums = stacked(shown.map(({ ns }) => ns.map(valueOf)), points);
    const highest = unit === "percent" ? 100 : Math.max(1e-9, ...sums.flatMap(({ upper }) => upper)) * 1.03;
    const left = narrow.matches ? 58 : 74;
    const x = [ends[0], ends[2 * points - 1]];
    const across = { left, width: width - left - 12, x };
    const upper = panel({ ...across, top: 8, height: withSteps ? height * 0.62 : height - 60, y: [0, highest] });
    leftAxis(drawn, upper, unit === "percent" ? "% of the time" : "ms per iteration", ticks(0, highest, 5));
    const xs = ends.map(upper.x);
    sums.forEach((edges, place) => {
      const { name, category } = shown[place];
      const path = between(xs, twice(edges.upper.map(upper.y)), twice(edges.lower.map(upper.y)));
      const paint = { fill: operationColour(name, category), stroke: css("--panel"), "stroke-width": 0.6 };
      drawn.append(make("path", { ...paint, d: path, class: "area" }));
    });
    let lowest = upper;
    if (withSteps) {
      const top = upper.bottom + 26;
      const most = Math.max(1e-9, ...speeds.map((value) => value || 0)) * 1.08;
      lowest = panel({ ...across, top, height: height - top - 46, y: [0, most] });
      leftAxis(drawn, lowest, "steps/s", ticks(0, most, 3));
      speedLine(drawn, lowest);
    }
    const marks = ticks(x[0], x[1], narrow.matches ? 5 : 10, true).filter((value) => value >= x[0] && value <= x[1]);
    const title = merged > 1 ? `iteration (each step is the mean of up to ${whole(merged)} iterations)` : "iteration";
    bottomAxis(drawn, lowest, title, marks.length ? marks : [middle[0]]);
    pointer(element, drawn, middle.map(upper.x), upper.top, lowest.bottom, (point) => {
      return [iterationsOf(data, point), described(shown, point)];
    }, xs);
    legend(document.getElementById("ledger-legend"), data.areas.map(({ name, category }) => {
      const colour = operationColour(name, category);
      return { name: shorter(name, 44), title: name, colour, shown: !hidden.has(name) };
    }), toggle);
  }

  function speedLine(drawn, box) {
    const heights = twice(speeds.map((speed) => (speed === null ? null : box.y(speed))));
    const line = ends.map((x, end) => [box.x(x), heights[end]]);
    const colour = css("--accent");
    drawn.append(make("path", { d: through(line), fill: "none", stroke: colour, "stroke-width": 1.8, class: "line" }));
  }

  function described(shown, point) {
    const lines = shown.map(({ name, category, ns }) => {
      const each = duration(ns[point] / iterations[point]);
      const figures = `${share(ns[point], point).toFixed(1)}%, ${each}`;
      return { text: `${shorter(name, 34)} ${figures}`, colour: operationColour(name, category) };
    }).reverse();
    return withSteps && speeds[point] !== null ? [...lines, `${rate(speeds[point])} steps/s`] : lines;
  }

  function toggle(place) {
    const { name } = data.areas[place];
    if (!hidden.delete(name)) hidden.add(name);
    draw();
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      unit = button.dataset.unit;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      draw();
    });
  }
  register(element, draw);
  return {
    update(given) {
      data = given;
      present(buttons[0].parentElement, Boolean(data));
      if (!data) {
        nothing(element, "No iterations were marked, so there is nothing to draw. Mark them with profiler.iteration().");
        return;
      }
      something(element);
      measure();
      draw();
    },
  };
}
