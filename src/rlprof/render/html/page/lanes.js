// One strip per lane over the iterations: the height of a colour is the part of the time that the lane worked at it.

function lanes(data) {
  const element = document.getElementById("lanes-chart");
  if (!data) {
    nothing(element, "No iterations were marked, so there is no timeline. Mark them with profiler.iteration().");
    return;
  }
  const points = data.first.length;
  const ends = endsOf(data);
  const share = (ns, point) => (data.wall[point] ? ns / data.wall[point] : 0);
  const named = new Map();
  for (const strip of data.strips) {
    for (const area of strip.areas) named.set(area.name, area.category);
  }

  function draw() {
    const strip = Math.max(34, Math.min(110, 240 / data.strips.length)); // few lanes have more room
    const title = 18;
    const left = 8;
    const height = data.strips.length * (strip + title) + 44;
    const { drawn, width } = sheet(element, height);
    const across = { left, width: width - left - 10, x: [ends[0], ends[2 * points - 1]] };
    data.strips.forEach((lane, row) => {
      const box = panel({ ...across, top: row * (strip + title) + title, height: strip, y: [0, 1] });
      const worked = lane.areas.map(({ ns }) => ns.map(share));
      const total = lane.areas.flatMap(({ ns }) => ns).reduce((sum, one) => sum + one, 0);
      const busy = total / (data.wall.reduce((sum, one) => sum + one, 0) || 1);
      const label = `${lane.name}: ${lane.kind}, at work ${Math.round(100 * Math.min(1, busy))}% of the time`;
      drawn.append(text(left, box.top - 5, fitting(label, box.width, 12), { fill: css("--ink"), class: "lane" }));
      const frame = { x: box.left, y: box.top, width: box.width, height: strip };
      drawn.append(make("rect", { ...frame, fill: css("--panel"), stroke: css("--line") }));
      stacked(worked, points).forEach(({ lower, upper }, place) => {
        const flat = (side) => twice(side.map((value) => box.y(Math.min(1, value))));
        const { name, category } = lane.areas[place];
        const path = between(ends.map(box.x), flat(upper), flat(lower));
        drawn.append(make("path", { d: path, fill: operationColour(name, category), class: "area" }));
      });
    });
    const box = panel({ ...across, top: 0, height: height - 44, y: [0, 1] });
    const marks = ticks(ends[0], ends[2 * points - 1], narrow.matches ? 5 : 12, true).filter((mark) => mark >= 1);
    bottomAxis(drawn, box, "iteration", marks.length ? marks : [data.first[0]]);
    const xs = data.first.map((first, point) => box.x((first + data.last[point]) / 2));
    pointer(element, drawn, xs, 0, box.bottom, (point) => {
      return [iterationsOf(data, point), data.strips.flatMap((lane) => described(lane, point))];
    }, ends.map(box.x));
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

  register(element, draw);
  const hidden = document.getElementById("lanes-hidden");
  if (data.hidden) hidden.textContent = `Not drawn: ${many(data.hidden, "lane")} with less work.`;
}

/** `iteration 3`, or `iterations 21 to 30` where a point stands for several. */
function iterationsOf({ first, last }, point) {
  const [from, to] = [whole(first[point]), whole(last[point])];
  return from === to ? `iteration ${from}` : `iterations ${from} to ${to}`;
}
