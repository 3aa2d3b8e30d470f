// The accounts over the iterations, stacked: each point sums to its wall time. Below them, steps per second.

function ledger(element, data) {
  const buttons = Array.from(document.querySelectorAll("[data-unit]"));
  if (!data) {
    buttons[0].parentElement.remove();
    nothing(element, "No iterations were marked, so there is no chart over iterations. Mark them with profiler.iteration().");
    return;
  }
  const points = data.first.length;
  const iterations = data.first.map((first, point) => data.last[point] - first + 1);
  const middle = data.first.map((first, point) => (first + data.last[point]) / 2);
  const merged = Math.max(...iterations);
  const withSteps = data.steps.some((steps) => steps > 0);
  const hidden = new Set();
  let unit = "percent";

  function area(part, colour) {
    const percent = part.ns.map((ns, point) => (data.wall[point] ? (100 * ns) / data.wall[point] : 0));
    const each = part.ns.map((ns, point) => ns / iterations[point]);
    const shared = {
      name: shortLabel(part.name, 40),
      visible: !hidden.has(part.name),
      x: middle,
      y: unit === "percent" ? percent : each.map((ns) => ns / 1e6),
      text: each.map((ns, point) => `${percent[point].toFixed(1)}%, ${duration(ns)}`),
      hovertemplate: "%{text}",
    };
    // One point has no area.
    if (points === 1) return { ...shared, type: "bar", textposition: "none", marker: { color: colour } };
    const line = { color: css("--panel"), width: 0.6 };
    return { ...shared, type: "scatter", mode: "lines", stackgroup: "ledger", fillcolor: colour, line };
  }

  function speed() {
    const values = data.steps.map((steps, point) => (data.wall[point] ? (steps / data.wall[point]) * 1e9 : null));
    return {
      type: "scatter",
      mode: points > 60 ? "lines" : "lines+markers",
      name: "steps per second",
      x: middle,
      y: values,
      yaxis: "y2",
      text: values.map((value) => (value === null ? "" : rate(value))),
      hovertemplate: "%{text}",
      line: { color: css("--accent"), width: 1.8 },
      marker: { size: 4 },
    };
  }

  function draw() {
    const seen = new Map();
    const colours = data.areas.map((part) => {
      const place = seen.get(part.category) || 0;
      seen.set(part.category, place + 1);
      return shade(categoryColour(part.category), place);
    });
    const traces = data.areas.map((part, place) => area(part, colours[place]));
    const items = data.areas.map(({ name }, place) => ({ name: shorter(name, 44), title: name, colour: colours[place], shown: !hidden.has(name) }));
    legend(document.getElementById("ledger-legend"), items, toggle);
    if (withSteps) traces.push(speed());
    const layout = baseLayout(narrow.matches ? 420 : 460);
    layout.barmode = "stack";
    layout.hovermode = narrow.matches ? "closest" : "x unified";
    layout.xaxis = axis(merged > 1 ? `iteration (a point is the mean of up to ${whole(merged)})` : "iteration", {
      anchor: withSteps ? "y2" : "y",
      range: points === 1 ? [middle[0] - 0.5, middle[0] + 0.5] : [middle[0], middle[points - 1]],
      showgrid: false,
      tickformat: ",d",
      // Between few iterations plotly would put ticks at halves.
      ...(points <= 10 ? { dtick: merged } : {}),
      unifiedhovertitle: { text: merged > 1 ? "around iteration %{x}" : "iteration %{x}" },
    });
    layout.yaxis = axis(unit === "percent" ? "% of the wall time" : "ms per iteration", {
      domain: withSteps ? [0.32, 1] : [0, 1],
      fixedrange: true,
      ...(unit === "percent" ? { range: [0, 100] } : { rangemode: "tozero" }),
    });
    if (withSteps) {
      const below = { domain: [0, 0.24], rangemode: "tozero", fixedrange: true, nticks: 4, tickformat: countFormat() };
      layout.yaxis2 = axis("steps/s", below);
    }
    return Plotly.react(element, traces, layout, CONFIG);
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
  register(draw);
}
