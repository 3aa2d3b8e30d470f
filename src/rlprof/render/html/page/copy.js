// Commands get a button that copies them.

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A browser may forbid it for a page that was opened as a file. Copying a selection is always allowed.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function copyButtons() {
  for (const command of document.querySelectorAll("[data-copy]:not(:has(.copy))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      await toClipboard(command.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    });
    command.append(button);
  }
}
