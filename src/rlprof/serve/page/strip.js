// The live strip: what the training does at this moment. Its elements are kept and changed, so that nothing flickers
// and the focus stays where it is.

const byId = (id) => document.getElementById(id);

/** An element of HTML with a class and children. */
function tag(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Change a text only if it differs: a selection in it, and what a screen reader reads, stay. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** As many children as items. `make` makes one without a content, `fill` puts an item into it. */
function fillList(list, items, makeOne, fill) {
  while (list.children.length > items.length) list.lastElementChild.remove();
  while (list.children.length < items.length) list.append(makeOne());
  items.forEach((item, place) => fill(list.children[place], item));
}

/** A time of day, with the date if it is not today. */
function clock(seconds) {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("sv-SE")} ${time}`;
}

function strip() {
  let said = "";
  let newest = null;
  let came = 0; // when the newest frame came, in ms
  let lostTimer = 0;

  function showLost() {
    const seconds = Math.round((Date.now() - came) / 1000);
    const age = seconds < 60 ? `${seconds} s` : duration(1e9 * seconds);
    write(byId("now-state"), `no connection, figures ${age} old`);
    byId("now-state").className = "badge state stopped";
  }

  /** Tell a screen reader, but only what is rare: the state, and that the training is stuck. */
  function say(text) {
    if (text === said) return;
    if (said) byId("now-said").textContent = text;
    said = text;
  }

  function facts(found) {
    fillList(byId("now-facts"), found, () => tag("div", "", tag("dt"), tag("dd")), (one, [name, value]) => {
      write(one.children[0], name);
      write(one.children[1], value);
    });
  }

  function gauges(frame) {
    const speed = frame.speed && {
      what: frame.speed.unit, value: frame.speed.now, remark: `mean ${frame.speed.mean}`, lead: true,
      history: frame.speed.history, mean: frame.speed.meanValue,
    };
    const shown = [...(speed ? [speed] : []), ...frame.usage];
    const makeOne = () => tag("div", "gauge", tag("h3"), tag("b"), tag("small"), tag("div", "line-of"));
    fillList(byId("now-gauges"), shown, makeOne, (one, gauge) => {
      const [what, value, remark, line] = one.children;
      one.classList.toggle("lead", Boolean(gauge.lead));
      write(what, gauge.what);
      write(value, gauge.value);
      write(remark, gauge.remark);
      line.replaceChildren(sparkline(gauge.history, gauge.mean ?? null));
      line.hidden = gauge.history.length < 2;
    });
    byId("now-gauges").hidden = !shown.length;
  }

  function bar(cell, now, whole, colour) {
    const [track] = cell.children;
    const [filled, mark] = track.children;
    filled.style.width = `${Math.max(0, Math.min(100, now || 0))}%`;
    filled.style.background = colour;
    mark.hidden = whole === null;
    mark.style.left = `${Math.max(0, Math.min(99.5, whole || 0))}%`;
  }

  function row() {
    const track = tag("span", "track", tag("span", "filled"), tag("span", "mark"));
    track.setAttribute("aria-hidden", "true");
    const heading = tag("th", "", tag("i", "swatch"), tag("span"));
    heading.scope = "row";
    heading.append(tag("small"));
    return tag("tr", "", heading, tag("td"), tag("td", "", track), tag("td"));
  }

  function parts(frame) {
    fillList(byId("now-parts"), frame.parts, row, (one, part) => {
      const [name, now, track, whole] = one.cells;
      const colour = `var(--cat-${part.category}, var(--cat-other))`;
      name.children[0].style.background = colour;
      write(name.children[1], part.name);
      write(name.children[2], part.where && ` in ${part.where}`);
      name.title = name.textContent;
      write(now, part.nowText);
      bar(track, part.now, part.share, colour);
      write(whole, part.shareText);
    });
    write(byId("now-window"), frame.window ? `in ${frame.window}` : "");
    byId("now-time").hidden = !frame.parts.length;
  }

  function lanesNow(frame) {
    fillList(byId("now-lanes"), frame.lanes, row, (one, lane) => {
      const [name, busy, track, does] = one.cells;
      name.children[0].className = `dot ${!lane.alive ? "gone" : lane.waits || !lane.doing ? "waits" : "works"}`;
      write(name.children[1], lane.name);
      name.title = `${lane.kind} ${lane.whole}`;
      write(busy, lane.busyText);
      bar(track, lane.busy, null, "var(--accent)");
      write(does, doing(lane));
      does.title = lane.path;
    });
    write(byId("now-count"), frame.lanes.length > 1 ? whole(frame.lanes.length + frame.hiddenLanes) : "");
    byId("now-hidden").textContent = frame.hiddenLanes
      ? `${many(frame.hiddenLanes, "lane")} not shown: ended, or beyond the first.`
      : "";
    byId("now-doing").hidden = !frame.lanes.length;
  }

  /** `waits in collect for env-0, env-1`, `env_step for 3.0 ms`, or `no operation`. */
  function doing(lane) {
    if (!lane.alive) return "has ended";
    if (!lane.doing) return lane.since ? `no operation for ${lane.since}` : "no operation";
    const since = lane.since ? ` for ${lane.since}` : "";
    if (!lane.waits) return `${lane.doing}${since}`;
    const others = lane.waitsFor.length ? `, waiting for ${lane.waitsFor.join(", ")}` : ", waiting";
    return `${lane.doing}${since}${others}`;
  }

  function alerts(frame) {
    const lines = [
      ...frame.changes,
      ...frame.alerts.map(({ time, kind, text }) => ({ text: `${clock(time)} ${text}`, kind })).reverse(),
    ];
    fillList(byId("now-alerts"), lines, () => tag("li", "", tag("span", "badge"), tag("span")), (one, line) => {
      const kind = line.kind.replaceAll("_", " ");
      one.children[0].className = `badge ${line.kind === "faster" ? "good" : "warn"}`;
      one.children[0].title = kind;
      write(one.children[0], kind);
      write(one.children[1], line.text);
    });
    byId("now-alerts").hidden = !lines.length;
  }

  function stuck(found) {
    byId("now-stuck").hidden = !found;
    if (!found) return;
    write(byId("now-stuck-title"), `Stuck for ${found.seconds}.`);
    write(byId("now-stuck-reason"), found.reason);
    fillList(byId("now-stuck-lanes"), found.lanes, () => tag("li"), (one, lane) => {
      write(one, `${lane.name}: ${lane.path || doing(lane)}${lane.since ? `, for ${lane.since}` : ""}`);
    });
  }

  function outcomes(found, capturing) {
    const texts = capturing ? [...found, { text: "Waiting for the trace of three iterations.", href: "" }] : found;
    fillList(byId("outcomes"), texts, () => tag("p"), (one, { text, href }) => {
      if (one.textContent === text && Boolean(one.querySelector("a")) === Boolean(href)) return;
      const link = href ? tag("a", "", text) : text;
      if (href) link.href = href;
      one.replaceChildren(link);
    });
    byId("outcomes").hidden = !texts.length;
  }

  const shown = {
    show(frame) {
      [newest, came] = [frame, Date.now()];
      clearInterval(lostTimer);
      const running = frame.running;
      write(byId("now-state"), running && frame.stuck ? "stuck" : frame.state);
      const look = running ? (frame.stuck ? "stuck" : "running") : frame.state === "finished" ? "finished" : "stopped";
      byId("now-state").className = `badge state ${look}`;
      facts(frame.facts);
      gauges(frame);
      parts(frame);
      lanesNow(frame);
      alerts(frame);
      stuck(frame.stuck);
      outcomes(frame.outcomes, frame.capturing);
      byId("now-pair").hidden = !frame.parts.length && !frame.lanes.length;
      byId("now-problem").hidden = !frame.problem;
      write(byId("now-problem"), frame.problem);
      byId("act-capture").hidden = !running;
      byId("act-capture").disabled = frame.capturing;
      byId("act-stacks").hidden = !running;
      say(frame.stuck ? `The training is stuck: ${frame.stuck.reason}` : `State: ${frame.state}.`);
    },
    problem(text) {
      byId("now-problem").hidden = !text;
      write(byId("now-problem"), text);
    },
    /** There is no connection to the server, for the reason in the text. With "", there is one again. */
    lost(text) {
      clearInterval(lostTimer);
      if (!text) {
        shown.show(newest);
        return;
      }
      shown.problem(text);
      if (!newest.running) return;
      showLost();
      lostTimer = setInterval(showLost, 1000);
    },
  };
  return shown;
}
