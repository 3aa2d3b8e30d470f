// A small line of the newest values, with the mean as a dashed line if it is known.

const SPARK = { width: 150, height: 34 };

function sparkline(values, mean = null) {
  const known = values.filter((value) => Number.isFinite(value));
  const { width, height } = SPARK;
  const drawn = make("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  drawn.setAttribute("preserveAspectRatio", "none");
  if (known.length < 2) return drawn;
  const most = Math.max(...known, mean || 0) * 1.08 || 1;
  const y = (value) => height - 1 - (value / most) * (height - 2);
  const x = (place) => (place / (values.length - 1)) * width;
  const points = values.map((value, place) => [x(place), Number.isFinite(value) ? y(value) : null]);
  const line = through(points);
  if (known.length === values.length) {
    drawn.append(make("path", { d: `${line}L${width},${height}L0,${height}Z`, class: "under" }));
  }
  if (mean !== null) drawn.append(make("line", { x1: 0, x2: width, y1: y(mean), y2: y(mean), class: "mean" }));
  drawn.append(make("path", { d: line, class: "line" }));
  return drawn;
}
