// Python stacks: one block per process, one list of frames per thread, the innermost frame first.

function showStacks(element, processes) {
  const close = tag("button", "plain", "Close");
  close.type = "button";
  const hide = () => {
    element.hidden = true;
    byId("act-stacks").focus();
  };
  close.addEventListener("click", hide);
  element.onkeydown = (event) => {
    if (event.key === "Escape") hide();
  };
  const time = new Date().toLocaleTimeString("en-GB");
  const title = tag("h3", "", `Python stacks at ${time}`);
  title.tabIndex = -1;
  element.replaceChildren(tag("div", "line", title, close), ...processes.map(processOf));
  element.hidden = false;
  title.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
}

function processOf(process) {
  const threads = process.threads.map((thread) => {
    const frames = [...thread.frames].reverse().map((frame) => {
      const where = tag("span", "where", `${frame.where} `, tag("b", "", frame.function));
      where.title = frame.path;
      return tag("li", "", where, ...(frame.source ? [tag("code", "", frame.source)] : []));
    });
    const hidden = thread.hidden ? [tag("li", "hint", "outer frames are left out")] : [];
    return tag("div", "thread", tag("h4", "", thread.name), tag("ol", "frames", ...frames, ...hidden));
  });
  const problem = process.problem ? [tag("p", "warning", process.problem)] : [];
  return tag("div", "process", tag("h4", "process-name", process.name), ...problem, ...threads);
}
