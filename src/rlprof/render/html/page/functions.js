// The user's functions inside one operation: a flame graph of the samples of the Python stack.

function functions() {
  const holder = document.getElementById("functions");
  const element = document.getElementById("functions-chart");
  const select = document.getElementById("functions-operation");
  const hidden = document.getElementById("functions-hidden");
  const chart = boxes(element, document.getElementById("functions-path"), () => (narrow.matches ? 340 : 320));
  let data = [];

  function choose(keep) {
    const chosen = data[Number(select.value)];
    chart.show(chosen, keep);
    hidden.textContent = chosen.hidden ? `Not drawn: the ${many(chosen.hidden, "smallest stack")}.` : "";
  }

  function draw() {
    if (data.length) chart.draw();
  }

  select.addEventListener("change", () => {
    choose(false);
    draw();
  });
  register(element, draw);
  return {
    mark: (words) => (data.length ? chart.mark(words) : 0),
    update(given, concerned) {
      const fresh = !data.length;
      data = given;
      present(holder, data.length > 0);
      if (!data.length) return;
      const kept = options(select, data.map(({ name }) => name));
      // The operation of the first finding, or the one with the most time.
      const first = data.findIndex(({ operation }) => concerned.includes(operation));
      if (fresh || !kept) select.value = String(Math.max(0, first));
      choose(kept && !fresh);
      draw();
    },
  };
}
