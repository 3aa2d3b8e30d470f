// CPU and memory over time. Missing values are gaps, not zeros.

function resources(element, data) {
  if (!data) {
    nothing(element, "The machine was not sampled, because the run was too short or sampling failed.");
    return;
  }
  const seconds = data.time_ns.map((ns) => ns / 1e9);
  const longest = Math.max(...seconds);
  const [scale, unit] = longest > 7200 ? [3600, "hours"] : longest > 300 ? [60, "minutes"] : [1, "seconds"];
  const time = seconds.map((value) => value / scale);
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
  const measured = ([column]) => data[column].some((value) => value !== null);
  const most = Math.max(0, ...MEMORY.flatMap(([column]) => data[column].map((value) => value || 0)));
  const [bytes, size] = most >= 2 ** 30 ? [2 ** 30, "GB"] : [2 ** 20, "MB"];

  function line([column, name, colour], divisor, yaxis, show) {
    return {
      type: "scatter",
      mode: time.length > 60 ? "lines" : "lines+markers",
      name,
      x: time,
      y: data[column].map((value) => (value === null ? null : value / divisor)),
      yaxis,
      text: data[column].map((value) => (value === null ? "" : show(value / divisor))),
      hovertemplate: "%{text}",
      connectgaps: false,
      cliponaxis: false,
      line: { color: categoryColour(colour), width: 1.8 },
      marker: { size: 4.5 },
    };
  }

  function draw() {
    const cpu = CPU.filter(measured).map((column) => line(column, 1, "y", (value) => `${value.toFixed(0)}%`));
    const amount = (value) => `${Number(value.toPrecision(3)).toLocaleString("en-US")} ${size}`;
    const memory = MEMORY.filter(measured).map((column) => line(column, bytes, "y2", amount));
    const layout = baseLayout(narrow.matches ? 360 : 380);
    layout.hovermode = narrow.matches ? "closest" : "x unified";
    const lines = [...CPU, ...MEMORY].filter(measured);
    const items = lines.map(([, name, colour]) => ({ name, colour: categoryColour(colour) }));
    legend(document.getElementById("resources-legend"), items);
    const anchor = memory.length ? "y2" : "y";
    const hovered = { hoverformat: ".3~f", unifiedhovertitle: { text: `%{x} ${unit}` } };
    layout.xaxis = axis(`${unit} since recording began`, { anchor, showgrid: false, rangemode: "tozero", ...hovered });
    const vertical = { rangemode: "tozero", fixedrange: true, nticks: 5, tickformat: "," };
    if (cpu.length) layout.yaxis = axis("CPU, %", { ...vertical, domain: memory.length ? [0.54, 1] : [0, 1] });
    const lower = cpu.length ? [0, 0.44] : [0, 1];
    if (memory.length) layout.yaxis2 = axis(`memory, ${size}`, { ...vertical, domain: lower });
    return Plotly.react(element, [...cpu, ...memory], layout, CONFIG);
  }

  if (![...CPU, ...MEMORY].some(measured)) {
    nothing(element, "Nothing could be sampled on this machine.");
    return;
  }
  register(draw);
}
