// Panels with scales and axes.

/** A rectangle of a sheet with its two scales. `x` and `y` are the values at its ends. */
function panel({ left, top, width, height, x, y, logX = false, logY = false }) {
  const scale = ([low, high], log, from, to) => {
    const position = log ? Math.log10 : Number;
    const [start, end] = [position(low), position(high)];
    return (value) => from + ((position(value) - start) / (end - start || 1)) * (to - from);
  };
  return {
    left, top, width, height,
    right: left + width,
    bottom: top + height,
    x: scale(x, logX, left, left + width),
    y: scale(y, logY, top + height, top),
  };
}

/** Round numbers from low to high, about `most` of them. */
function ticks(low, high, most, whole = false) {
  const rough = (high - low) / Math.max(1, most) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const values = [];
  for (let times = Math.ceil(low / step - 1e-9); times * step <= high + step * 1e-6; times++) values.push(times * step);
  return values;
}

/** 20,000 on wide screens, 20k on narrow ones. */
function tickText(value) {
  if (narrow.matches && value >= 10000) {
    const [scale, unit] = value >= 1e6 ? [1e6, "M"] : [1e3, "k"];
    return `${Number((value / scale).toPrecision(3))}${unit}`;
  }
  return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** The axis at the left with lines across the panel. `marks` are values, or values with their texts. */
function leftAxis(drawn, box, title, marks) {
  for (const mark of marks) {
    const { value, text: written } = typeof mark === "number" ? { value: mark, text: tickText(mark) } : mark;
    const y = box.y(value);
    drawn.append(make("line", { x1: box.left, x2: box.right, y1: y, y2: y, stroke: css("--line") }));
    drawn.append(text(box.left - 7, y + 4, written, { "text-anchor": "end", class: "ytick" }));
  }
  const middle = box.top + box.height / 2;
  drawn.append(text(0, 0, title, { "text-anchor": "middle", transform: `translate(13 ${middle}) rotate(-90)` }));
}

/** The axis at the bottom. A text that would touch the one before it is left out. */
function bottomAxis(drawn, box, title, marks) {
  drawn.append(make("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: css("--muted") }));
  let free = -Infinity;
  for (const mark of marks) {
    const { value, text: written } = typeof mark === "number" ? { value: mark, text: tickText(mark) } : mark;
    const [x, half] = [box.x(value), widthOf(written, 12) / 2];
    const middle = Math.min(x, box.right - half + 8);
    drawn.append(make("line", { x1: x, x2: x, y1: box.bottom, y2: box.bottom + 4, stroke: css("--muted") }));
    if (middle - half < free + 6) continue;
    free = middle + half;
    drawn.append(text(middle, box.bottom + 17, written, { "text-anchor": "middle", class: "xtick" }));
  }
  drawn.append(text(box.left + box.width / 2, box.bottom + 36, title, { "text-anchor": "middle" }));
}
