// The call tree of the training. Start-up, and everything else outside of the training, is drawn on demand.

const MOST_TREE = 640;
const LEAST_TREE = 330;
const SEEN = 0.004; // of the whole: smaller boxes are hardly visible and need no entry in the legend

function tree() {
  const element = document.getElementById("tree-chart");
  const whole = document.getElementById("tree-whole");
  const controls = whole.parentElement;
  const chart = boxes(element, document.getElementById("tree-path"), () => {
    if (narrow.matches || paper.matches) return 420;
    // With the findings beside it, the picture fills the first screen.
    const top = element.getBoundingClientRect().top + scrollY;
    return Math.round(Math.max(LEAST_TREE, Math.min(MOST_TREE, innerHeight - top - 84)));
  });
  let data = null;
  whole.addEventListener("click", () => chart.enter(chart.level() === 0 ? data.start : 0));
  element.addEventListener("level", () => whole.setAttribute("aria-pressed", String(chart.level() === 0)));

  function draw() {
    if (!data) return;
    chart.draw();
    const seen = data.categories.filter((_, place) => data.values[place] >= SEEN * data.values[0]);
    const found = Array.from(new Set(seen)).filter((name) => name && name !== "outside");
    legend(document.getElementById("tree-legend"), found.map((name) => ({ name, colour: categoryColour(name) })));
  }

  register(element, draw);
  return {
    mark: (words) => (data ? chart.mark(words) : 0),
    update(given) {
      data = given;
      present(controls, Boolean(data));
      if (!data) {
        nothing(element, "No time was recorded, so there is no call tree.");
        return;
      }
      something(element);
      present(whole, data.outside && data.start !== 0);
      chart.show(data, true);
      draw();
      document.getElementById("tree-hidden").textContent = data.hidden
        ? `Not drawn: the ${many(data.hidden, "smallest place")}.`
        : "";
    },
  };
}
