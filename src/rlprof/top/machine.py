"""What the training uses of the machine: CPU, memory, GPU."""

from __future__ import annotations

from rich.text import Text

from rlprof.analysis.figures import count, size
from rlprof.live.frame import Frame, Usage
from rlprof.top.drawing import Panel, curve, joined
from rlprof.top.look import Look

LABEL = 7
LEAST_CURVE = 5


def machine(frame: Frame, width: int, look: Look) -> Panel:
    """One line per resource, with its last minutes."""
    used = frame.usage
    lines = []
    if (cores := _cores(used)) is not None:
        lines.append(_line("CPU", f"{cores} of {_cores_of(used)}", used.cpu_history, width, look))
    if used.machine_cpu is not None:
        lines.append(_line("", f"machine {used.machine_cpu:.0f}% busy", (), width, look))
    if used.memory is not None:
        whole = f" of {size(used.memory_machine)}" if used.memory_machine else ""
        lines.append(_line("Memory", size(used.memory) + whole, used.memory_history, width, look))
    if used.gpu is not None or used.gpu_memory is not None:
        lines.append(_line("GPU", ", ".join(_gpu(used)), (), width, look))
    if not lines:
        lines.append(Text("Not measured yet." if frame.is_running else "Not measured.", look.style("muted")))
    return Panel(_title(frame), lines)


def machine_line(frame: Frame, look: Look) -> Panel:
    """The same in one line."""
    used = frame.usage
    parts = []
    if (cores := _cores(used)) is not None:
        parts.append(f"CPU {cores} of {_cores_of(used)}")
    if used.memory is not None:
        parts.append(f"memory {size(used.memory)}")
    if used.gpu is not None or used.gpu_memory is not None:
        parts.append(f"GPU {', '.join(_gpu(used))}")
    shown = f" {look.glyphs.dot} ".join(parts) or "Not measured."
    return Panel(_title(frame), [Text(shown, look.style("ink"))])


def _title(frame: Frame) -> str:
    return "Machine" if frame.is_running else "Machine: mean CPU, peak memory"


def _cores(used: Usage) -> str | None:
    """CPU of the process and its children, in cores."""
    if used.cpu is None:
        return None
    return f"{(used.cpu + (used.children_cpu or 0.0)) / 100:.2f}"


def _cores_of(used: Usage) -> str:
    return f"{count(used.cores)} {'core' if used.cores == 1 else 'cores'}"


def _gpu(used: Usage) -> list[str]:
    busy = [f"{used.gpu:.0f}% busy"] if used.gpu is not None else []
    return busy + ([size(used.gpu_memory)] if used.gpu_memory is not None else [])


def _line(label: str, figure: str, history: tuple[float, ...], width: int, look: Look) -> Text:
    left = Text.assemble((f"{label:<{LABEL}}", look.style("muted")), (figure, look.style("ink")))
    room = width - left.cell_len - 2
    if room < LEAST_CURVE or len(history) < 2:
        return left
    return joined(left, Text(curve(history, room, look.glyphs, least=0.0), look.style("curve")), width, look)
