// Nested boxes from left to right: height is time, and to the right of a box is what it contains. Even thin boxes have
// room for a name that way.

const FONT = 12;
const LINE = 15;

/** Texts for a box: its name and figure, and its hottest line of code if there is room. */
function written(name, figure, line, width, height) {
  const rows = Math.floor(height / LINE);
  const room = width - 11;
  if (rows < 1) return [];
  const taken = widthOf(`  ${figure}`, FONT);
  const [beside, alone] = [fitting(name, room - taken, FONT), fitting(name, room, FONT)];
  const found = [];
  if (beside === name) found.push(`${name}  ${figure}`);
  else if (rows > 1 && widthOf(figure, FONT) <= room) found.push(alone, figure);
  else found.push(beside.length >= 8 ? `${beside}  ${figure}` : alone);
  const code = line && found.length < rows ? fitting(line, room, FONT - 1) : "";
  return code.length >= 12 ? [...found, code] : found.filter(Boolean);
}

/** `path` holds the way to the box that is shown, `heightOf` gives the height of the chart. */
function boxes(element, path, heightOf) {
  let data, children, level, words = [];

  function deepest(place, most) {
    if (!most) return 0;
    return Math.max(0, ...children[place].map((child) => 1 + deepest(child, most - 1)));
  }

  function matches(place) {
    const text = `${data.names[place]} ${data.lines[place]} ${data.categories[place]}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function draw() {
    hideTip();
    const { place: focused } = element.contains(document.activeElement) ? document.activeElement.dataset : {};
    const { drawn, width, height } = sheet(element, heightOf());
    drawn.removeAttribute("aria-hidden");
    const columns = Math.max(1, deepest(level, narrow.matches ? 3 : element.clientWidth > 900 ? 7 : 5));
    const across = width / columns;
    const add = (parent, left, top, scale, column) => {
      for (const child of children[parent]) {
        const tall = data.values[child] * scale;
        if (tall >= 0.6) {
          // A box that contains nothing reaches to the right edge: its name and line of code have all the room.
          const wide = children[child].length ? across : across * (columns - column);
          drawn.append(box(child, left, top, wide, tall));
          if (column + 1 < columns) add(child, left + across, top, scale, column + 1);
        }
        top += tall;
      }
    };
    add(level, 0, 0, height / (data.values[level] || 1), 0);
    if (focused) drawn.querySelector(`[data-place="${focused}"]`)?.focus({ preventScroll: true });
    crumbs();
  }

  function box(place, x, y, width, height) {
    const colour = data.categories[place] ? categoryColour(data.categories[place]) : css("--raised");
    const inner = children[place].length > 0;
    const state = !words.length ? "" : matches(place) ? " hit" : " dim";
    const one = make("g", { class: `box${inner ? " inner" : ""}${state}`, "data-place": place });
    one.append(make("rect", { x, y, width: Math.max(0, width - 1), height: Math.max(0.5, height - 1), fill: colour }));
    const lines = written(data.names[place], data.texts[place], data.lines[place], width, height - 2);
    const first = y + height / 2 - ((lines.length - 1) * LINE) / 2 + 4;
    lines.forEach((line, row) => {
      const size = row ? FONT - 1 : FONT;
      one.append(text(x + 5, first + row * LINE, line, { fill: inkOn(colour), "font-size": size }));
    });
    const label = [data.names[place], data.texts[place], data.lines[place]].filter(Boolean).join(", ");
    one.setAttribute("aria-label", label);
    one.setAttribute("role", inner ? "button" : "img");
    // Thinner boxes are in the table. They would only be stops without a name on the way through the page.
    if (lines.length) one.setAttribute("tabindex", "0");
    const hover = data.hovers[place] ? data.hovers[place].split("\n") : [data.texts[place]];
    one.addEventListener("pointermove", (event) => showTip(data.names[place], hover, event.clientX, event.clientY));
    one.addEventListener("pointerleave", hideTip);
    one.addEventListener("focus", () => {
      const at = one.getBoundingClientRect();
      if (one.matches(":focus-visible")) showTip(data.names[place], hover, at.left + 20, at.top);
    });
    one.addEventListener("blur", hideTip);
    one.addEventListener("click", () => inner && enter(place));
    one.addEventListener("keydown", (event) => {
      if (inner && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        enter(place);
        path.lastElementChild.focus();
      }
    });
    return one;
  }

  /** The boxes around the one that is shown, outermost first. */
  function crumbs() {
    const way = [];
    const first = level < data.start ? 0 : data.start;
    for (let place = level; place >= first; place = data.parents[place]) way.unshift(place);
    path.replaceChildren(...way.map((place) => {
      const crumb = document.createElement("button");
      crumb.type = "button";
      crumb.textContent = `${shorter(data.names[place], 40)} ${data.texts[place]}`;
      if (place === level) crumb.setAttribute("aria-current", "true");
      crumb.addEventListener("click", () => enter(place));
      return crumb;
    }));
  }

  function enter(place) {
    level = place;
    draw();
    element.dispatchEvent(new Event("level"));
  }

  /** The names on the way to a box, outermost first. */
  function wayTo(place) {
    const way = [];
    for (; place >= 0; place = data.parents[place]) way.unshift(data.names[place]);
    return way;
  }

  /** The box with these names around it, or the innermost one of them that there is. */
  function found(way) {
    let place = 0;
    for (const name of way.slice(1)) {
      const next = children[place].find((child) => data.names[child] === name);
      if (next === undefined) break;
      place = next;
    }
    return place;
  }

  return {
    /** Show this data. `keep` stays at the box that is shown, if it is not the first one. */
    show(shown, keep = false) {
      const way = keep && data && level !== data.start ? wayTo(level) : null;
      data = shown;
      children = data.names.map(() => []);
      data.parents.forEach((parent, place) => parent >= 0 && children[parent].push(place));
      level = way ? found(way) : data.start;
    },
    draw,
    enter,
    level: () => level,
    /** Mark the boxes that have all these words. Returns how many there are, drawn or not. */
    mark(wanted) {
      words = wanted;
      draw(); // also without words, to take the marks away
      return words.length ? data.names.filter((_, place) => data.parents[place] >= 0 && matches(place)).length : 0;
    },
  };
}
