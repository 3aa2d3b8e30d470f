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

function distribution() {
  const element = document.getElementById("distribution");
  const select = document.getElementById("distribution-operation");
  const logarithmic = document.getElementById("distribution-log");
  const controls = select.closest(".controls");
  let data = [];

  function draw() {
    if (!data.length) return;
    const operation = data[Number(select.value)];
    const found = bins(operation.buckets);
    const log = logarithmic.checked;
    const { drawn, width, height } = sheet(element, narrow.matches ? 340 : 380);
    const [left, top] = [narrow.matches ? 58 : 74, 66];
    const across = width - left - 12;
    const [low, high] = atLeast(SHORTEST_AXIS, found[0][0], found[found.length - 1][1]);
    const pad = (high / low) ** 0.04;
    const marks = Object.entries(operation.marks).map(([mark, ns]) => ({ ns, text: `${mark} ${duration(ns)}` }));
    const begin = Math.log10(low / pad);
    // Each label stands to the right of its line, so the axis goes on until the last one has room.
    const ends = marks.map(({ ns, text: label }) => {
      const taken = (widthOf(label, LABEL_SIZE) + 10) / across;
      return begin + (Math.log10(ns) - begin) / Math.max(0.2, 1 - taken);
    });
    const x = [10 ** begin, 10 ** Math.max(Math.log10(high * pad), ...ends)];
    const most = Math.max(...found.map(([, , calls]) => calls));
    const y = log ? [0.5, Math.max(10, most * 1.3)] : [0, most * 1.05];
    const box = panel({ left, top, width: across, height: height - top - 46, x, y, logX: true, logY: log });
    const decades = Array.from({ length: Math.floor(Math.log10(y[1])) + 1 }, (_, power) => 10 ** power);
    leftAxis(drawn, box, "calls", log ? decades : ticks(0, y[1], 5, true));
    for (const [start, end, calls] of found) {
      if (!calls) continue;
      const [from, to, up] = [box.x(start), box.x(end), box.y(calls)];
      const shape = { x: from, y: up, width: Math.max(0.8, to - from), height: box.bottom - up };
      const values = { "data-calls": calls, "data-start": start, "data-end": end };
      drawn.append(make("rect", { ...shape, ...values, fill: categoryColour(operation.category), class: "bin" }));
    }
    bottomAxis(drawn, box, "duration of a call", durationTicks(...x));
    drawMarks(drawn, box, marks);
    const middles = found.map(([start, end]) => box.x(Math.sqrt(start * end)));
    pointer(element, drawn, middles, top, box.bottom, (bin) => {
      const [start, end, calls] = found[bin];
      const share = Number(((100 * calls) / operation.calls).toPrecision(3));
      return [`${duration(start)} to ${duration(end)}`, [`${many(calls, "call")}, ${share}%`]];
    });
    const read = marks.map((mark) => mark.text).join(", ");
    const what = `Distribution of ${many(operation.calls, "call")} of ${operation.name}`;
    element.setAttribute("aria-label", `${what}: ${read}`);
  }

  select.addEventListener("change", draw);
  logarithmic.addEventListener("change", draw);
  register(element, draw);
  return {
    update(given) {
      data = given;
      present(controls, data.length > 0);
      if (!data.length) {
        nothing(element, "No call has ended, so there are no durations.");
        return;
      }
      something(element);
      options(select, data.map(({ name }) => name));
      draw();
    },
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

/** Percentiles as lines. Each label has its own row above the bars, so that labels stay readable if they nearly
 * coincide. The shortest duration has the highest row: to the right of its label are only longer durations, whose lines
 * end lower. */
function drawMarks(drawn, box, marks) {
  marks.forEach(({ ns, text: label }, row) => {
    const x = box.x(ns);
    const rise = 18 * (marks.length - 1 - row);
    const ink = css("--ink");
    const dashes = { "stroke-width": 1.5, "stroke-dasharray": ["none", "6 4", "2 3"][row] };
    const ends = { x1: x, x2: x, y1: box.bottom, y2: box.top - rise - 14 };
    drawn.append(make("line", { ...ends, ...dashes, stroke: ink, class: "mark" }));
    drawn.append(text(x + 4, box.top - rise - 4, label, { fill: ink, "font-size": LABEL_SIZE, class: "mark-label" }));
  });
}
