// Figures in the same form as in all rlprof output, and names that fit their place.

const DURATION_UNITS = [
  [1, "ns", 999.5],
  [1e3, "us", 999.5],
  [1e6, "ms", 999.5],
  [1e9, "s", 600],
];

/** Three digits and a unit: the same text as rlprof.analysis.figures.duration. */
function duration(ns) {
  for (const [scale, unit, end] of DURATION_UNITS) {
    if (ns / scale < end) return `${unit === "ns" ? ns.toFixed(0) : digits(ns / scale)} ${unit}`;
  }
  const seconds = Math.round(ns / 1e9);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`;
  return `${digits(ns / 3600e9)} h`;
}

function digits(value) {
  return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

/** Whole numbers with commas, independent of the locale, as the whole page is in English. */
function whole(number) {
  return Math.round(number).toLocaleString("en-US");
}

/** Per second: the same text as rlprof.analysis.figures.rate. */
function rate(number) {
  return number >= 99.95 ? whole(number) : String(Number(number.toPrecision(3)));
}

/** With its noun: the same text as rlprof.analysis.figures.many of a whole number. */
function many(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** At most `most` characters of a name. The middle is cut, as in the text report. */
function shorter(name, most) {
  const characters = Array.from(name);
  if (characters.length <= most) return name;
  const tail = Math.floor((most - 1) / 3);
  return characters.slice(0, most - 1 - tail).join("") + "…" + characters.slice(-tail).join("");
}

const FAMILY = getComputedStyle(document.body).fontFamily;
const ruler = document.createElement("canvas").getContext("2d");

/** Width of a chart text in px. */
function widthOf(text, size) {
  ruler.font = `${size}px ${FAMILY}`;
  return ruler.measureText(text).width;
}

/** As much of a name as fits into `room` px; empty if almost nothing fits. */
function fitting(name, room, size) {
  const least = 4;
  let most = Math.min(Array.from(name).length, 90);
  while (most >= least && widthOf(shorter(name, most), size) > room) most--;
  return most >= Math.min(least, Array.from(name).length) ? shorter(name, most) : "";
}

/** Tick values and labels for a logarithmic axis of durations. */
function durationTicks(low, high) {
  const decades = Math.log10(high / low);
  const factors = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 1.5, 2, 3, 4, 5, 7];
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) values.push(value);
    }
  }
  if (values.length < 3) {
    // A short axis has few or none of these round numbers, so it gets even steps.
    const step = [1, 2, 5, 10].map((factor) => factor * 10 ** Math.floor(Math.log10((high - low) / 5)))
      .find((size) => (high - low) / size <= 6);
    values.length = 0;
    for (let times = Math.ceil(low / step); times * step <= high; times++) values.push(times * step);
  }
  // Measured figures have three digits; ticks drop trailing zeros.
  const texts = values.map((value) => duration(value).replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 "));
  return values.map((value, place) => ({ value, text: texts[place] }));
}
