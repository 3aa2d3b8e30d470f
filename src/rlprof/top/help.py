"""What the keys do and what the dashboard shows, for `?`."""

from __future__ import annotations

from rich.text import Text

from rlprof.top.drawing import wrapped
from rlprof.top.look import Look

_KEYS = (
    ("q", "Quit. The training goes on, unless this command has started it."),
    ("space", "Pause the dashboard and go on. The training is not paused."),
    ("o", "Order operations by call tree, share now, share of the run, or name."),
    ("/", "Show only operations with this text in their name. Escape shows all."),
    ("up, down", "Select an operation."),
    ("enter", "Open the selected operation: durations of its calls, and its hottest lines."),
    ("left, right", "Show earlier and later iterations. Escape returns to the present."),
    ("s", "Show the Python stacks of the training's processes."),
    ("t", "Capture a torch trace of the next steps."),
    ("r", "Write the HTML report, and open it if there is a browser."),
    ("d", "Switch between dark and light colours."),
    ("ctrl+c", "Interrupt the training, if this command has started it. Else quit."),
)

_SHOWN = (
    "Bars and the column `now` are shares of the newest iterations. The tick and the column `run` are shares of the "
    "whole training, as in the report.",
    "In the call tree, a share includes everything below. In the other orders, and for a past iteration, it is the "
    "operation's own time.",
    "`unattributed` is time of the driver outside of all operations. `rlprof` is the cost of recording.",
    "A lane is a thread, a task or a worker process. `busy` is the share of its time that it worked inside operations.",
)


def help_lines(width: int, look: Look) -> list[Text]:
    lines = []
    for key, text in _KEYS:
        first, *rest = wrapped(text, max(20, width - 14), 4, look)
        lines.append(Text.assemble((f"{key:>12}  ", look.style("key")), (first, look.style("ink"))))
        lines += [Text(f"{'':14}{line}", look.style("ink")) for line in rest]
    for text in _SHOWN:
        lines += [Text(), *(Text(line, look.style("muted")) for line in wrapped(text, width, 6, look))]
    return lines
