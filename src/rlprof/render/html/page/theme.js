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

const places = new Map();

/** Colour of an operation, the same in every chart: its category's, with a shade of its own. */
function operationColour(name, category) {
  if (!places.has(category)) places.set(category, new Map());
  const named = places.get(category);
  if (!named.has(name)) named.set(name, named.size);
  return shade(categoryColour(category), named.get(name));
}

/** Draw a chart again when the colours or the width of its element change. */
function register(element, draw) {
  charts.push(draw);
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
}

const legends = new Map();

/** The legend below a chart: names wrap, and are text for every browser and screen reader. */
function legend(list, items, toggle) {
  const drawn = JSON.stringify(items);
  // Made again without need, it would lose the focus.
  if (legends.get(list) === drawn) return;
  legends.set(list, drawn);
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

for (const query of [narrow, paper, matchMedia("(prefers-color-scheme: dark)")]) {
  query.addEventListener("change", () => charts.forEach((draw) => draw()));
}
