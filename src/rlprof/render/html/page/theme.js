// Charts in the colours of the page. They come from its style sheet, so that a category has one colour everywhere.

const narrow = matchMedia("(max-width: 600px)");
const paper = matchMedia("print");
const PAPER_WIDTH = 680; // px of A4 and Letter inside their margins; a page cannot ask the browser before printing
const charts = [];

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function categoryColour(category) {
  return css(`--cat-${category.replace(/[^\p{L}\p{N}]/gu, "")}`) || css("--cat-other");
}

function channels(colour) {
  const hex = colour.replace("#", "");
  return [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

/** One colour on the way to another. */
function mix(colour, other, share) {
  const [from, to] = [channels(colour), channels(other)];
  const mixed = from.map((value, i) => Math.round(value + (to[i] - value) * share));
  return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

/** Operations of one category: its colour, then alternately darker and lighter, so that neighbours differ. */
function shade(colour, place) {
  const share = place === 0 ? 0 : [0.26, 0.44, 0.14, 0.36][Math.floor((place - 1) / 2) % 4];
  return mix(colour, place % 2 ? "#000000" : "#ffffff", share);
}

function luminance(colour) {
  const [red, green, blue] = channels(colour).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Black or white, whichever is readable on a colour: one of the two always has a contrast of 4.5. */
function inkOn(colour) {
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}

/** What all charts have in common. */
function baseLayout(height) {
  return {
    height,
    ...(paper.matches ? { width: PAPER_WIDTH } : { autosize: true }),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: FAMILY, size: narrow.matches ? 11 : 12.5, color: css("--ink") },
    margin: { l: narrow.matches ? 58 : 74, r: 12, t: 10, b: 44 },
    hoverlabel: {
      bgcolor: css("--panel"),
      bordercolor: css("--muted"),
      font: { color: css("--ink"), size: 12.5 },
      align: "left",
      namelength: -1,
    },
    showlegend: false,
    dragmode: narrow.matches ? false : "zoom",
  };
}

function axis(title, more = {}) {
  return {
    title: { text: title, font: { color: css("--muted"), size: 12 }, standoff: 8 },
    gridcolor: css("--line"),
    linecolor: css("--line"),
    tickcolor: css("--line"),
    tickfont: { color: css("--muted") },
    zeroline: false,
    // On a touch screen, moving over a chart scrolls the page.
    fixedrange: narrow.matches,
    ...more,
  };
}

/** Format of ticks that count: 20,000 on wide screens, 20k on narrow ones. */
function countFormat() {
  return narrow.matches ? "~s" : ",";
}

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, scrollZoom: false, showTips: false };

/** Draw a chart now, and again when the colours or the width of the page change. */
function register(draw) {
  charts.push(draw);
  draw();
}

/** The legend below a chart: names wrap, and are text for every browser and screen reader. */
function legend(list, items, toggle) {
  list.replaceChildren(...items.map(({ name, title, colour, shown }, place) => {
    const item = document.createElement("li");
    if (title && title !== name) item.title = title;
    const swatch = document.createElement("i");
    swatch.className = "swatch";
    swatch.style.background = colour;
    if (!toggle) {
      item.append(swatch, name);
      return item;
    }
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(shown));
    button.append(swatch, name);
    button.addEventListener("click", () => {
      toggle(place);
      list.querySelectorAll("button")[place].focus();
    });
    item.append(button);
    return item;
  }));
}

/** A sentence in place of a chart without data. */
function nothing(element, text) {
  element.classList.add("empty");
  element.removeAttribute("role");
  element.removeAttribute("aria-label");
  element.textContent = text;
}

for (const query of [narrow, paper, matchMedia("(prefers-color-scheme: dark)")]) {
  query.addEventListener("change", () => charts.forEach((draw) => draw()));
}
