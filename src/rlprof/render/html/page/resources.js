// CPU and memory over time. Missing values are gaps, not zeros.

const CPU = [
  ["cpu", "process, of one core", "policy"],
  ["children_cpu", "children, of one core", "environment"],
  ["machine_cpu", "machine, of all cores", "other"],
  ["device_busy", "GPU busy", "learning"],
];
const MEMORY = [
  ["rss", "process memory", "policy"],
  ["children_rss", "children's memory", "environment"],
  ["device_memory", "GPU memory", "learning"],
];

function resources() {
  const element = document.getElementById("resources");
  let data = null;
  let cpu, memory, time, unit, bytes, size;

  /** What was measured, and its units. */
  function measure(given) {
    data = null;
    if (!given) return "The machine was not sampled, because the run was too short or sampling failed.";
    const measured = ([column]) => given[column].some((value) => value !== null);
    [cpu, memory] = [CPU.filter(measured), MEMORY.filter(measured)];
    if (!cpu.length && !memory.length) return "Nothing could be sampled on this machine.";
    data = given;
    const seconds = data.time_ns.map((ns) => ns / 1e9);
    const longest = Math.max(...seconds);
    let scale;
    [scale, unit] = longest > 7200 ? [3600, "hours"] : longest > 300 ? [60, "minutes"] : [1, "seconds"];
    time = seconds.map((value) => value / scale);
    const most = Math.max(0, ...memory.flatMap(([column]) => data[column].map((value) => value || 0)));
    [bytes, size] = most >= 2 ** 30 ? [2 ** 30, "GB"] : [2 ** 20, "MB"];
    return "";
  }

  function line(drawn, box, [column, name, colour], divisor) {
    const points = data[column].map((value, point) => {
      return [box.x(time[point]), value === null ? null : box.y(value / divisor)];
    });
    const stroke = categoryColour(colour);
    const paint = { fill: "none", stroke, "stroke-width": 1.8, class: "line", "data-name": name };
    drawn.append(make("path", { ...paint, d: through(points) }));
    // A value between two gaps has no line, and few values are easier to see as dots.
    points.forEach(([cx, cy], point) => {
      const alone = (points[point - 1] || [0, null])[1] === null && (points[point + 1] || [0, null])[1] === null;
      if (cy !== null && (alone || points.length <= 60)) drawn.append(make("circle", { cx, cy, r: 2.5, fill: stroke }));
    });
  }

  function draw() {
    if (!data) return;
    const { drawn, width, height } = sheet(element, narrow.matches ? 360 : 380);
    const left = narrow.matches ? 58 : 74;
    const across = { left, width: width - left - 12, x: [Math.min(...time), Math.max(...time)] };
    const room = height - 54;
    const part = cpu.length && memory.length ? (room - 28) / 2 : room;
    let top = 8;
    let last;
    for (const [columns, title, divisor] of [[cpu, "CPU, %", 1], [memory, `memory, ${size}`, bytes]]) {
      if (!columns.length) continue;
      const values = columns.flatMap(([column]) => data[column].map((value) => (value || 0) / divisor));
      const highest = Math.max(1e-9, ...values) * 1.08;
      last = panel({ ...across, top, height: part, y: [0, highest] });
      leftAxis(drawn, last, title, ticks(0, highest, 4));
      columns.forEach((column) => line(drawn, last, column, divisor));
      top += part + 28;
    }
    bottomAxis(drawn, last, `${unit} since recording began`, ticks(...across.x, narrow.matches ? 5 : 10));
    pointer(element, drawn, time.map(last.x), 8, last.bottom, (point) => {
      return [`${Number(time[point].toPrecision(3))} ${unit}`, described(point)];
    });
    const items = [...cpu, ...memory].map(([, name, colour]) => ({ name, colour: categoryColour(colour) }));
    legend(document.getElementById("resources-legend"), items);
  }

  function described(point) {
    const amount = (value) => `${Number((value / bytes).toPrecision(3)).toLocaleString("en-US")} ${size}`;
    const share = (value) => `${value.toFixed(0)}%`;
    const shown = [...cpu.map((column) => [column, share]), ...memory.map((column) => [column, amount])];
    return shown.filter(([[column]]) => data[column][point] !== null).map(([[column, name, colour], figure]) => {
      return { text: `${name}: ${figure(data[column][point])}`, colour: categoryColour(colour) };
    });
  }

  register(element, draw);
  return {
    update(given) {
      const missing = measure(given);
      if (missing) {
        nothing(element, missing);
        return;
      }
      something(element);
      draw();
    },
  };
}
