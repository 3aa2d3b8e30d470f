// The user's functions inside one operation: a flame graph of the samples of the Python stack.

function functions(data, concerned) {
  const element = document.getElementById("functions-chart");
  if (!data.length) {
    document.getElementById("functions").remove();
    return null;
  }
  const select = document.getElementById("functions-operation");
  const hidden = document.getElementById("functions-hidden");
  data.forEach(({ name }, place) => select.append(new Option(shorter(name, 44), String(place))));
  // The operation of the first finding, or the one with the most time.
  const first = data.findIndex(({ operation }) => concerned.includes(operation));
  select.value = String(Math.max(0, first));
  const chart = boxes(element, document.getElementById("functions-path"), () => (narrow.matches ? 340 : 320));

  function choose() {
    const chosen = data[Number(select.value)];
    chart.show(chosen);
    hidden.textContent = chosen.hidden ? `Not drawn: the ${many(chosen.hidden, "smallest stack")}.` : "";
  }

  choose();
  select.addEventListener("change", () => {
    choose();
    chart.draw();
  });
  register(element, chart.draw);
  return chart;
}
