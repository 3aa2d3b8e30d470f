// Distribution of the durations of an operation's calls. Bucket i covers [2^(i/32), 2^((i+1)/32)) ns.

const MOST_BINS = 90;
const SHORTEST_AXIS = 1.5; // ratio of the ends of the axis; calls of equal length then draw a bar and do not fill the chart
const LABEL_SIZE = 12;

/** Two ends around the same middle, with at least this ratio. */
function atLeast(ratio, low, high) {
  const missing = Math.max(1, Math.sqrt(ratio / (high / low)));
  return [low / missing, high * missing];
}

/** Neighbouring buckets merged until each is wide enough to be seen: [start ns, end ns, calls]. */
function bins(buckets) {
  const first = buckets[0];
  const last = buckets[buckets.length - 2];
  let size = 1;
  while ((last - first) / size > MOST_BINS) size *= 2;
  const calls = new Map();
  for (let i = 0; i < buckets.length; i += 2) {
    const bin = Math.floor(buckets[i] / size);
    calls.set(bin, (calls.get(bin) || 0) + buckets[i + 1]);
  }
  const found = [];
  for (let bin = Math.floor(first / size); bin <= Math.floor(last / size); bin++) {
    found.push([2 ** ((bin * size) / 32), 2 ** (((bin + 1) * size) / 32), calls.get(bin) || 0]);
  }
  return found;
}

function distribution(element, data) {
  const select = document.getElementById("distribution-operation");
  const logarithmic = document.getElementById("distribution-log");
  if (!data.length) {
    select.closest(".controls").remove();
    nothing(element, "No call has ended, so there are no durations.");
    return { show: () => false };
  }
  data.forEach(({ name }, place) => select.append(new Option(shorter(name, 44), String(place))));

  function draw() {
    const operation = data[Number(select.value)];
    const found = bins(operation.buckets);
    const log = logarithmic.checked;
    const colour = categoryColour(operation.category);
    const [low, high] = atLeast(SHORTEST_AXIS, found[0][0], found[found.length - 1][1]);
    const trace = {
      type: "bar",
      // plotly places bars by their middle and width in ns, on a logarithmic axis too.
      x: found.map(([start, end]) => (start + end) / 2),
      width: found.map(([start, end]) => end - start),
      y: found.map(([, , calls]) => calls),
      text: found.map(([start, end, calls]) => {
        const share = ((100 * calls) / operation.calls).toPrecision(3);
        return `${duration(start)} to ${duration(end)}<br>${many(calls, "call")}, ${share}%`;
      }),
      textposition: "none",
      hovertemplate: "%{text}<extra></extra>",
      marker: { color: colour, line: { width: 0 } },
    };
    const layout = baseLayout(narrow.matches ? 340 : 380);
    layout.showlegend = false;
    layout.bargap = 0;
    layout.margin.t = 66;
    const pad = (high / low) ** 0.04;
    const marks = Object.entries(operation.marks).map(([mark, ns]) => ({ ns, text: `${mark} ${duration(ns)}` }));
    const begin = Math.log10(low / pad);
    // Each label stands to the right of its line, so the axis goes on until the last one has room.
    const across = (layout.width || element.clientWidth) - layout.margin.l - layout.margin.r;
    const ends = marks.map(({ ns, text }) => {
      const taken = (widthOf(text, LABEL_SIZE) + 10) / across;
      return begin + (Math.log10(ns) - begin) / Math.max(0.2, 1 - taken);
    });
    const end = Math.max(Math.log10(high * pad), ...ends);
    layout.xaxis = axis("duration of a call", {
      type: "log",
      range: [begin, end],
      tickmode: "array",
      ...durationTicks(10 ** begin, 10 ** end),
      showgrid: false,
    });
    const most = Math.max(...trace.y);
    // Calls are whole numbers.
    const steps = most <= 10 ? { dtick: Math.ceil(most / 5) } : {};
    const linear = { rangemode: "tozero", tickformat: countFormat(), ...steps };
    layout.yaxis = axis("calls", { ...(log ? { type: "log", dtick: 1, tickformat: ",d" } : linear), fixedrange: true });
    const plotted = layout.height - layout.margin.t - layout.margin.b;
    // Each label has its own row above the bars, so that labels stay readable if they nearly coincide. The shortest
    // duration has the highest row: to the right of its label are only longer durations, whose lines end lower.
    const rise = (row) => 18 * (marks.length - 1 - row);
    layout.shapes = marks.map(({ ns }, row) => ({
      type: "line",
      x0: ns,
      x1: ns,
      y0: 0,
      y1: 1 + (rise(row) + 14) / plotted,
      yref: "paper",
      line: { color: css("--ink"), width: 1.5, dash: ["solid", "dash", "dot"][row] },
    }));
    layout.annotations = marks.map(({ ns, text }, row) => ({
      x: Math.log10(ns),
      xanchor: "left",
      xshift: 3,
      y: 1,
      yref: "paper",
      yanchor: "bottom",
      yshift: rise(row),
      showarrow: false,
      text,
      font: { color: css("--ink"), size: LABEL_SIZE },
    }));
    const read = marks.map(({ text }) => text).join(", ");
    element.setAttribute("aria-label", `Distribution of ${many(operation.calls, "call")} of ${operation.name}: ${read}`);
    return Plotly.react(element, [trace], layout, CONFIG);
  }

  select.addEventListener("change", draw);
  logarithmic.addEventListener("change", draw);
  register(draw);
  addEventListener("resize", draw); // the labels take the same px of a narrower axis
  return {
    /** Choose an operation by its name. Returns false if it has no distribution. */
    show(name) {
      const place = data.findIndex((operation) => operation.name === name);
      if (place < 0) return false;
      select.value = String(place);
      draw();
      return true;
    },
  };
}
