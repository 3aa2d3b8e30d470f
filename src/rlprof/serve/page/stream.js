// A stream of events from the server, as long as somebody sees the page.

const PATIENCE = 5000; // ms without the server before the page says so

/** A name for this browser: it has six connections to a server, so the server limits streams by browser. */
function browserName() {
  try {
    const name = localStorage.getItem("rlprof-browser") || crypto.getRandomValues(new Uint32Array(2)).join("-");
    localStorage.setItem("rlprof-browser", name);
    return name;
  } catch {
    return ""; // storage is switched off
  }
}

/** `since` gives what the page has already, `handlers` take the events by name, `problem` shows a sentence or "". */
function follow(address, since, handlers, problem) {
  let source = null;
  let lost = 0;
  let over = false;

  function connect() {
    if (source || over || document.visibilityState === "hidden") return;
    source = new EventSource(`${address}?${new URLSearchParams({ since: since(), browser: browserName() })}`);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), event.lastEventId));
    }
    source.addEventListener("open", () => {
      if (lost < 0) problem("");
      clearTimeout(lost);
      lost = 0;
    });
    source.addEventListener("end", () => {
      over = true;
      disconnect();
    });
    source.addEventListener("error", onError);
  }

  function onError() {
    if (over || !source) return;
    if (source.readyState === EventSource.CLOSED) {
      disconnect();
      explain();
    } else if (!lost) {
      lost = setTimeout(() => {
        lost = -1;
        problem("The server does not answer. It may have been stopped.");
      }, PATIENCE);
    }
  }

  /** The server answers, but refuses the stream. */
  async function explain() {
    over = true;
    try {
      const { status } = await fetch("/asset/-/-");
      problem(status === 403
        ? "The server was restarted: open the new address that it prints."
        : "The server does not show this any more. Load the page again.");
    } catch {
      problem("The server does not answer. It may have been stopped.");
    }
  }

  function disconnect() {
    clearTimeout(lost);
    if (source) source.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") disconnect();
    else connect();
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  connect();
}
