// The box with figures beside the mouse pointer, or beside what has the focus.

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);

/** Show a title and lines of text near a point of the window, inside the window. */
function showTip(title, lines, x, y) {
  const heading = document.createElement("b");
  heading.textContent = title;
  tip.replaceChildren(heading, ...lines.map((line) => {
    const row = document.createElement("div");
    if (line.colour) {
      const swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = line.colour;
      row.append(swatch);
    }
    row.append(line.text || line);
    return row;
  }));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const side = x + 14 + width <= innerWidth ? x + 14 : x - 14 - width;
  tip.style.left = `${Math.max(6, Math.min(side, innerWidth - width - 6))}px`;
  tip.style.top = `${Math.max(6, Math.min(y + 14, innerHeight - height - 6))}px`;
}

function hideTip() {
  tip.hidden = true;
}

addEventListener("scroll", hideTip, { passive: true });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});

/** A line that follows the pointer, or the arrow keys, from point to point. `describe` gives its title and lines.
    Of points with `ends`, in pairs, the one under the pointer is shown; else the nearest. */
function pointer(element, drawn, xs, top, bottom, describe, ends = null) {
  const dashed = { stroke: css("--ink"), "stroke-dasharray": "3 3" };
  const line = make("line", { ...dashed, y1: top, y2: bottom, visibility: "hidden" });
  drawn.append(line);
  let at = -1;
  function show(point, y) {
    at = Math.max(0, Math.min(xs.length - 1, point));
    line.setAttribute("x1", xs[at]);
    line.setAttribute("x2", xs[at]);
    line.setAttribute("visibility", "visible");
    const frame = drawn.getBoundingClientRect();
    const [title, lines] = describe(at);
    showTip(title, lines, frame.left + xs[at], y === undefined ? frame.top + top : y);
  }
  function hide() {
    line.setAttribute("visibility", "hidden");
    hideTip();
  }
  drawn.addEventListener("pointermove", (event) => {
    const x = event.clientX - drawn.getBoundingClientRect().left;
    const away = (point) => (ends
      ? Math.max(ends[2 * point] - x, x - ends[2 * point + 1], 0)
      : Math.abs(xs[point] - x));
    let nearest = 0;
    xs.forEach((_, point) => {
      if (away(point) < away(nearest)) nearest = point;
    });
    show(nearest, event.clientY);
  });
  drawn.addEventListener("pointerleave", hide);
  // Properties, so that drawing again replaces them.
  element.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.shiftKey) return;
    event.preventDefault();
    show(at + step);
  };
  element.onblur = hide;
}
