// Elements of SVG, and the sheet that a chart is drawn on.

// Taken from the browser, so that the page itself contains no address.
const SVG = Object.assign(document.createElement("div"), { innerHTML: "<svg></svg>" }).firstChild.namespaceURI;

/** An element with its attributes. Children are elements or text. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** An empty sheet as wide as its element, in place of what was drawn there before. */
function sheet(element, height) {
  // An element that is not laid out, as in a page that is being closed, has no width.
  const width = Math.max(160, paper.matches ? PAPER_WIDTH : element.clientWidth);
  const drawn = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  element.replaceChildren(drawn);
  return { drawn, width, height };
}

function text(x, y, written, attributes = {}) {
  return make("text", { x, y, fill: css("--muted"), "font-size": 12, ...attributes }, written);
}

/** The two ends of every point on the axis of iterations: it is as wide as the iterations that it stands for. */
function endsOf({ first, last }) {
  return first.flatMap((one, point) => [one - 0.5, last[point] + 0.5]);
}

/** Every value twice, for the two ends of its point. */
function twice(values) {
  return values.flatMap((value) => [value, value]);
}

/** Path through points; a point without a value is a gap. */
function through(points) {
  let path = "";
  let open = false;
  for (const [x, y] of points) {
    if (y !== null) path += `${open ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`;
    open = y !== null;
  }
  return path;
}

/** Closed path between an upper and a lower edge over the same x. */
function between(xs, upper, lower) {
  const there = xs.map((x, place) => `${x.toFixed(1)},${upper[place].toFixed(1)}`);
  const back = xs.map((x, place) => `${x.toFixed(1)},${lower[place].toFixed(1)}`).reverse();
  return `M${[...there, ...back].join("L")}Z`;
}

/** Sums of values from below: for each part its lower and upper edge at every point. */
function stacked(parts, points) {
  let below = new Array(points).fill(0);
  return parts.map((values) => {
    const edges = { lower: below, upper: values.map((value, point) => below[point] + value) };
    below = edges.upper;
    return edges;
  });
}
