// The call tree as an icicle: left to right, so that names have room however thin a place is.

function icicle(element, data) {
  const reset = document.getElementById("icicle-reset");
  if (!data) {
    reset.parentElement.remove();
    nothing(element, "No time was recorded, so there is no call tree.");
    return;
  }
  const ids = data.names.map((_, place) => String(place));
  let level = "0";

  function draw() {
    const colours = data.categories.map((category) => (category ? categoryColour(category) : css("--raised")));
    const trace = {
      type: "icicle",
      ids,
      parents: data.parents.map((parent) => (parent < 0 ? "" : ids[parent])),
      labels: data.names.map((name) => shortLabel(name, narrow.matches ? 18 : 28)),
      values: data.values,
      text: data.texts,
      // plotly breaks lines at <br>; the names around them are escaped.
      hovertext: data.hovers.map((hover, place) => {
        const lines = [`<b>${shortLabel(data.names[place], 60)}</b>`, ...hover.split("\n").map(label)];
        return lines.join("<br>");
      }),
      hoverinfo: "text",
      texttemplate: " %{label}  %{text}",
      leaf: { opacity: 1 },
      textposition: "middle left",
      branchvalues: "total",
      sort: false,
      level,
      maxdepth: narrow.matches ? 4 : 6,
      tiling: { orientation: "h", pad: 1 },
      pathbar: { visible: false },
      marker: {
        colors: colours,
        line: { color: css("--panel"), width: 1 },
      },
      textfont: { color: colours.map(inkOn), size: narrow.matches ? 10 : 12 },
      root: { color: css("--raised") },
    };
    const layout = { ...baseLayout(narrow.matches ? 460 : 600), margin: { l: 0, r: 0, t: 0, b: 0 } };
    // Text that would have to be smaller is left out: the hover and the table have it.
    layout.uniformtext = { minsize: narrow.matches ? 10 : 12, mode: "hide" };
    reset.disabled = level === "0";
    const found = Array.from(new Set(data.categories.filter(Boolean)));
    legend(document.getElementById("icicle-legend"), found.map((name) => ({ name, colour: categoryColour(name) })));
    return Plotly.react(element, [trace], layout, CONFIG);
  }

  register(draw);
  element.on("plotly_icicleclick", (event) => {
    level = event.nextLevel || "0";
    reset.disabled = level === "0";
  });
  reset.addEventListener("click", () => {
    level = "0";
    draw();
  });
  if (data.hidden) {
    const note = document.getElementById("icicle-hidden");
    note.textContent = `Not drawn: the ${whole(data.hidden)} smallest places.`;
    note.hidden = false;
  }
}
