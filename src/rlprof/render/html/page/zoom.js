// Zoom and pan along the axis of a chart: with buttons, keys, the wheel, and by dragging.

const CLOSER = 1.6;

/** `limits` gives the ends of the whole axis and the least width, `scaleOf` the px of a unit, `changed` draws. */
function zoom(element, group, limits, scaleOf, changed) {
  let view = null;

  function set(from, to) {
    const [first, last, least] = limits();
    const width = Math.max(least, Math.min(last - first, to - from));
    const start = Math.max(first, Math.min(last - width, from));
    view = width >= (last - first) * 0.999 ? null : [start, start + width, start + width >= last - 1e-9];
    show();
    changed();
  }

  function now() {
    const [first, last, least] = limits();
    if (!view) return [first, last];
    // A view that reached the newest point follows the training.
    const width = Math.max(least, Math.min(last - first, view[1] - view[0]));
    const start = view[2] ? last - width : Math.max(first, Math.min(last - width, view[0]));
    return [start, start + width];
  }

  function closer(factor, at = 0.5) {
    const [from, to] = now();
    const fixed = from + at * (to - from);
    set(fixed - (fixed - from) / factor, fixed + (to - fixed) / factor);
  }

  function pan(share) {
    const [from, to] = now();
    const by = share * (to - from);
    set(from + by, to + by);
  }

  const acts = {
    in: () => closer(CLOSER),
    out: () => closer(1 / CLOSER),
    left: () => pan(-0.5),
    right: () => pan(0.5),
    all: () => set(-Infinity, Infinity),
  };

  /** Disable the buttons that would change nothing. The one that has the focus keeps it. */
  function show() {
    const [first, last, least] = limits();
    const [from, to] = now();
    const useless = {
      in: to - from <= least * 1.001, out: !view, all: !view, left: from <= first + 1e-9, right: to >= last - 1e-9,
    };
    for (const button of group.querySelectorAll("[data-zoom]")) {
      button.setAttribute("aria-disabled", String(useless[button.dataset.zoom]));
    }
  }

  for (const button of group.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => acts[button.dataset.zoom]());
  }
  element.addEventListener("keydown", (event) => {
    const shifted = { ArrowLeft: "left", ArrowRight: "right" }[event.shiftKey ? event.key : ""];
    const act = shifted || { "+": "in", "=": "in", "-": "out", 0: "all" }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[act]();
  });
  element.addEventListener("wheel", (event) => {
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey) {
      event.preventDefault();
      const { left, width } = element.getBoundingClientRect();
      closer(event.deltaY < 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, (event.clientX - left) / width)));
    } else if (view && Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      pan(across / Math.max(1, element.clientWidth));
    }
  }, { passive: false });
  element.addEventListener("pointerdown", (event) => {
    if (!view || event.button !== 0) return;
    const [from, to] = now();
    const start = event.clientX;
    const move = (moved) => {
      const by = (start - moved.clientX) / scaleOf();
      if (Math.abs(start - moved.clientX) > 3) set(from + by, to + by);
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  });

  return { now, show, whole: () => { view = null; } };
}
