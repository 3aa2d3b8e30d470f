// The call tree of the training. Start-up, and everything else outside of the training, is drawn on demand.

const MOST_TREE = 640;
const LEAST_TREE = 330;
const SEEN = 0.004; // of the whole: smaller boxes are hardly visible and need no entry in the legend

function tree(data) {
  const element = document.getElementById("tree-chart");
  const whole = document.getElementById("tree-whole");
  if (!data) {
    whole.parentElement.remove();
    nothing(element, "No time was recorded, so there is no call tree.");
    return null;
  }
  const chart = boxes(element, document.getElementById("tree-path"), () => {
    if (narrow.matches || paper.matches) return 420;
    // With the findings beside it, the picture fills the first screen.
    const top = element.getBoundingClientRect().top + scrollY;
    return Math.round(Math.max(LEAST_TREE, Math.min(MOST_TREE, innerHeight - top - 84)));
  });
  chart.show(data);
  if (!data.outside || data.start === 0) whole.remove();
  whole.addEventListener("click", () => chart.enter(chart.level() === 0 ? data.start : 0));
  element.addEventListener("level", () => whole.setAttribute("aria-pressed", String(chart.level() === 0)));

  function draw() {
    chart.draw();
    const seen = data.categories.filter((_, place) => data.values[place] >= SEEN * data.values[0]);
    const found = Array.from(new Set(seen)).filter((name) => name && name !== "outside");
    legend(document.getElementById("tree-legend"), found.map((name) => ({ name, colour: categoryColour(name) })));
  }

  register(element, draw);
  const hidden = document.getElementById("tree-hidden");
  if (data.hidden) hidden.textContent = `Not drawn: the ${many(data.hidden, "smallest place")}.`;
  return chart;
}
