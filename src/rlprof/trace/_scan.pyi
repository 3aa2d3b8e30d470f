"""The C scanner; `twin.py` does the same."""

from typing import Any

class Column:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Scanner:
    def __new__(cls, numbers: tuple[str, ...], texts: tuple[str, ...], places: bool = False) -> Scanner: ...
    rows: int
    odd: int
    waiting: int
    text_bytes: int
    offset: int
    broken_at: int
    ended: bool
    has_events: bool
    def feed(self, data: Any, /) -> bool: ...
    def columns(self) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]: ...
