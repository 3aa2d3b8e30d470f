// The buttons that do something. The server takes them only from its own pages.

async function act(page, name) {
  try {
    const answer = await fetch(`/run/${page.run}/${name}`, { method: "POST", headers: { "X-Rlprof-Action": page.action } });
    if (!(answer.headers.get("content-type") || "").startsWith("application/json")) return { problem: await answer.text() };
    return await answer.json();
  } catch {
    return { problem: "The server does not answer. It may have been stopped." };
  }
}

function actions(page, live) {
  const busy = (button, text) => {
    const before = button.textContent;
    button.disabled = true;
    button.textContent = text;
    return () => {
      button.disabled = false;
      button.textContent = before;
    };
  };

  async function capture() {
    const done = busy(byId("act-capture"), "Requesting");
    const { problem } = await act(page, "capture");
    done();
    live.problem(problem);
  }

  async function stacks(button) {
    const done = busy(button, "Asking");
    const { problem, found } = await act(page, "stacks");
    done();
    live.problem(problem);
    if (!problem) showStacks(byId("stacks"), found);
  }

  byId("act-capture").addEventListener("click", capture);
  for (const id of ["act-stacks", "now-stuck-stacks"]) {
    byId(id).addEventListener("click", () => stacks(byId(id)));
  }
}
