"""Limits on the size of a trace, so that a malicious file costs seconds and not the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlprof.errors import UnreadableError

REMEDY = "Use --no-limits to read it anyway."


@dataclass(frozen=True, slots=True)
class Limits:
    """Real traces stay far below: 2 GB of text hold about 10 million events, and gzip shrinks them 7 to 30 times."""

    text: int = 4_000_000_000
    """Bytes of JSON after unpacking."""
    ratio: int = 100
    """Factor by which a file may grow when it is unpacked."""
    free: int = 128_000_000
    """Unpacked bytes from which the ratio is checked."""
    value: int = 4_000_000
    """Bytes of one event, or of one value of the header."""
    events: int = 50_000_000
    texts: int = 500_000_000
    """Bytes of all different names and texts together."""

    def check_text(self, path: Path, read: int, unpacked: int) -> None:
        """`read` is the number of bytes read so far, or the size of the file; `unpacked` is what they became."""
        if unpacked > self.text:
            raise UnreadableError(f"{path} has more than {self.text / 1e9:.1f} GB of text. {REMEDY}")
        if unpacked > self.free and unpacked > self.ratio * read:
            raise UnreadableError(
                f"{path} unpacks to more than {self.ratio} times its size, like a file that is made to fill a disk."
                f" {REMEDY}"
            )

    def check_content(self, path: Path, scanner: Any) -> None:
        """Check what was found in the text so far."""
        if scanner.waiting > self.value:
            raise UnreadableError(
                f"{path}: the value at byte {scanner.offset:,} of its text is larger than {self.value / 1e6:.1f} MB."
                f" {REMEDY}"
            )
        if scanner.rows > self.events:
            raise UnreadableError(f"{path} has more than {self.events:,} events. {REMEDY}")
        if scanner.text_bytes > self.texts:
            raise UnreadableError(f"{path} has more than {self.texts / 1e9:.1f} GB of different texts. {REMEDY}")


LIMITS = Limits()
NO_LIMITS = Limits(*[1 << 62] * 6)
