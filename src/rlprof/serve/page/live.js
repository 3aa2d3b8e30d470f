// The page of a run starts here: the report as it is, then events as long as the training runs and somebody looks.

const holder = byId("live");
const page = { run: holder.dataset.run, action: holder.dataset.action, since: holder.dataset.since };
const shownStrip = strip();
shownStrip.show(JSON.parse(byId("frame").textContent));
actions(page, shownStrip);

const trained = Boolean(holder.dataset.trained);
const report = trained ? reportPage() : null;
let chartData = JSON.parse(byId("data").textContent);
if (report) {
  byId("search").placeholder = "Search"; // beside the way home, there is no room for more
  report.draw(chartData);
  report.enliven();
}
// The page was shorter when the browser looked for the section that the address names.
if (performance.getEntriesByType("navigation")[0]?.type === "navigate") {
  document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
}

function onReport({ version, trained: isTrained, parts, data }) {
  page.since = `${page.since.slice(0, page.since.lastIndexOf("."))}.${version}`;
  if (isTrained !== trained) {
    location.reload(); // from the page of a start to the page of a report
    return;
  }
  if (!report) return;
  chartData = { ...chartData, ...data };
  keepingPlace(() => keepingFocus(() => {
    replaceParts(parts);
    report.draw(chartData);
    report.enliven();
  }));
}

if (holder.dataset.live) {
  const handlers = { frame: (frame) => shownStrip.show(frame), report: onReport };
  follow(`/run/${page.run}/events`, () => page.since, handlers, shownStrip.lost);
}
