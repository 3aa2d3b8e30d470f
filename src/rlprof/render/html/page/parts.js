// Parts of the page that come and go with the data, which a running training sends again and again.

const absent = new Map();

/** Take an element out of the page, or put it back where it was. */
function present(element, wanted) {
  const anchor = absent.get(element);
  if (wanted && anchor) {
    anchor.replaceWith(element);
    absent.delete(element);
  } else if (!wanted && !anchor) {
    absent.set(element, document.createComment(""));
    element.replaceWith(absent.get(element));
  }
}

const chartAttributes = new Map();

/** A sentence in place of a chart without data. */
function nothing(element, text) {
  const names = ["role", "aria-label", "tabindex"].filter((name) => element.hasAttribute(name));
  if (!chartAttributes.has(element)) chartAttributes.set(element, names.map((name) => [name, element.getAttribute(name)]));
  names.forEach((name) => element.removeAttribute(name));
  element.classList.add("empty");
  element.textContent = text;
}

/** The element is a chart again. */
function something(element) {
  for (const [name, value] of chartAttributes.get(element) || []) element.setAttribute(name, value);
  chartAttributes.delete(element);
  element.classList.remove("empty");
}

/** Fill a list to choose from. Returns false if the name that was chosen is not among the names any more. */
function options(select, names) {
  const before = Array.from(select.options, (option) => option.title);
  const chosen = before[select.selectedIndex];
  if (names.length === before.length && names.every((name, place) => name === before[place])) return true;
  select.replaceChildren(...names.map((name, place) => {
    const option = new Option(shorter(name, 44), String(place));
    option.title = name;
    return option;
  }));
  const place = names.indexOf(chosen);
  if (place >= 0) select.value = String(place);
  return place >= 0;
}
