// The call tree as an icicle chart from left to right, so that even thin places have room for names.

function icicle(element, data) {
  const reset = document.getElementById("icicle-reset");
  if (!data) {
    reset.parentElement.remove();
    nothing(element, "No time was recorded, so there is no call tree.");
    return;
  }
  const ids = data.names.map((_, place) => String(place));
  const depths = [];
  data.parents.forEach((parent, place) => depths.push(parent < 0 ? 0 : depths[parent] + 1));
  let level = "0";

  /** Number of columns that are drawn from this level on. */
  function columns(most) {
    const inside = new Set([Number(level)]);
    let deepest = depths[level];
    data.parents.forEach((parent, place) => {
      if (!inside.has(parent)) return;
      inside.add(place);
      deepest = Math.max(deepest, depths[place]);
    });
    return Math.min(most, deepest - depths[level] + 1);
  }

  /** Label and template of a place: plotly drops texts that are too wide, so they are shortened here. */
  function written(place, room, height, size) {
    const name = data.names[place];
    const share = widthOf(`   ${data.texts[place]}`, size);
    const [beside, alone] = [fitting(name, room - share, size), fitting(name, room, size)];
    if (beside === shorter(name, 28)) return [beside, " %{label}  %{text}"];
    const two = height > 3.2 * size && widthOf(data.texts[place], size) <= room;
    if (two) return [alone, " %{label}<br> %{text}"];
    // On one line the name is more useful than the figure, which the hover also shows.
    return beside.length >= 8 ? [beside, " %{label}  %{text}"] : [alone, " %{label}"];
  }

  function draw() {
    const layout = { ...baseLayout(narrow.matches ? 460 : 600), margin: { l: 0, r: 0, t: 0, b: 0 } };
    const [most, size] = narrow.matches ? [4, 10] : [6, 12];
    const room = (layout.width || element.clientWidth) / columns(most) - 11; // plotly keeps some px free around a text
    const texts = data.values.map((value, place) => {
      return written(place, room, (value / data.values[level]) * layout.height, size);
    });
    const colours = data.categories.map((category) => (category ? categoryColour(category) : css("--raised")));
    const trace = {
      type: "icicle",
      ids,
      parents: data.parents.map((parent) => (parent < 0 ? "" : ids[parent])),
      labels: texts.map(([name]) => label(name)),
      values: data.values,
      text: data.texts,
      // plotly breaks lines at <br>. The names are escaped.
      hovertext: data.hovers.map((hover, place) => {
        const lines = [`<b>${shortLabel(data.names[place], narrow.matches ? 32 : 60)}</b>`, ...hover.split("\n").map(label)];
        return lines.join("<br>");
      }),
      hoverinfo: "text",
      texttemplate: texts.map(([, template]) => template),
      leaf: { opacity: 1 },
      textposition: "middle left",
      branchvalues: "total",
      sort: false,
      level,
      maxdepth: most,
      tiling: { orientation: "h", pad: 1 },
      pathbar: { visible: false },
      marker: {
        colors: colours,
        line: { color: css("--panel"), width: 1 },
      },
      textfont: { color: colours.map(inkOn), size },
      root: { color: css("--raised") },
    };
    // Text that does not fit is left out. The hover and the table show it.
    layout.uniformtext = { minsize: size, mode: "hide" };
    reset.disabled = level === "0";
    const found = Array.from(new Set(data.categories.filter(Boolean)));
    legend(document.getElementById("icicle-legend"), found.map((name) => ({ name, colour: categoryColour(name) })));
    return Plotly.react(element, [trace], layout, CONFIG);
  }

  register(draw);
  let width = element.clientWidth;
  addEventListener("resize", () => {
    // plotly resizes the columns by itself, but not their labels.
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  });
  element.on("plotly_icicleclick", (event) => {
    level = event.nextLevel || "0";
    Plotly.Fx.loneUnhover(element._fullLayout._hoverlayer.node()); // it describes the previous place
    draw();
    return false; // already drawn, with labels for the new widths
  });
  reset.addEventListener("click", () => {
    level = "0";
    draw();
  });
  if (data.hidden) {
    const note = document.getElementById("icicle-hidden");
    note.textContent = `Not drawn: the ${many(data.hidden, "smallest place")}.`;
    note.hidden = false;
  }
}
