// New text for parts of the page, without losing what the reader has opened, selected, scrolled or focused.

/** What an element is called, so that its successor is found. */
function nameOf(element) {
  const label = element.getAttribute("aria-label") || element.textContent;
  return `${element.tagName} ${label.split(",")[0].replace(/[\d.,]+/g, "#")}`;
}

/** A `details` is known by its summary and the heading before it. */
function detailsOf(part) {
  return Array.from(part.querySelectorAll("details"), (details) => {
    const heading = details.parentElement.querySelector("h3");
    return [`${heading ? heading.textContent : ""} ${nameOf(details.querySelector("summary"))}`, details];
  });
}

/** Do something that moves elements or makes them anew, then focus the one that had the focus, or its successor. */
function keepingFocus(action) {
  const focused = document.activeElement;
  const holder = focused.closest("[data-part]") || focused.parentElement.closest("[id]");
  const name = holder && nameOf(focused);
  action();
  if (!holder || document.activeElement === focused) return;
  const successor = document.contains(focused)
    ? focused
    : Array.from(holder.querySelectorAll(focused.tagName)).find((one) => nameOf(one) === name);
  if (successor) successor.focus({ preventScroll: true });
}

function isSelectedIn(part) {
  const selection = getSelection();
  return Boolean(selection) && !selection.isCollapsed && part.contains(selection.anchorNode);
}

const delayed = new Map();

/** Put new markup, made by the server, into the parts. A part with a selection waits until it is gone. */
function replaceParts(texts) {
  for (const [name, text] of Object.entries(texts)) delayed.set(name, text);
  for (const [name, text] of Array.from(delayed)) {
    const part = document.querySelector(`[data-part="${CSS.escape(name)}"]`);
    if (part && isSelectedIn(part)) continue;
    delayed.delete(name);
    if (part) replacePart(part, text);
  }
}

/** Do something that may change the height of what is above, and leave what the reader sees where it is. */
function keepingPlace(action) {
  const anchor = scrollY > 0 ? firstVisible() : null;
  const before = anchor && anchor.getBoundingClientRect().top;
  action();
  const moved = anchor ? anchor.getBoundingClientRect().top - before : 0;
  if (Math.abs(moved) > 1) scrollBy({ top: moved, behavior: "instant" });
}

function replacePart(part, text) {
  const open = new Map(detailsOf(part).map(([name, details]) => [name, details.open]));
  const scrolled = Array.from(part.querySelectorAll(".scroll"), (box) => [box.scrollLeft, box.scrollTop]);
  part.innerHTML = text;
  for (const [name, details] of detailsOf(part)) {
    if (open.has(name)) details.open = open.get(name);
  }
  part.querySelectorAll(".scroll").forEach((box, place) => {
    if (scrolled[place]) [box.scrollLeft, box.scrollTop] = scrolled[place];
  });
}

/** The first section whose top is on the screen, or that fills it. */
function firstVisible() {
  return Array.from(document.querySelectorAll("main section")).find((one) => {
    return one.getBoundingClientRect().bottom > 60;
  });
}
