"""The scanner in Python, for installations without a compiler. It needs the whole text in memory."""

from __future__ import annotations

from array import array
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from json import JSONDecodeError, JSONDecoder, dumps
from typing import Any

ABSENT = -(2**63)
_SPACE = " \t\r\n"


class Scanner:
    """Takes the text of a trace in pieces and returns the columns of its events, which scan.h describes."""

    def __init__(self, numbers: tuple[str, ...], texts: tuple[str, ...], places: bool = False) -> None:
        self.odd = self.offset = 0
        self.waiting = self.text_bytes = 0  # always 0: it takes the text as a whole
        self.broken_at = -1
        self.ended = self.has_events = False
        self._numbers, self._texts, self._keeps_places = numbers, texts, places
        self._places = {name: array("q") for name in ("at", "size")}
        self._pieces: list[bytes] = []
        self._ids: dict[str, int] = {}
        self._columns = {name: array("i") for name in ("category", "name", "process", "thread")}
        self._times = {name: array("q") for name in ("start", "duration")}
        self._phase = bytearray()
        self._args = {key: (array("i"), array("q")) for key in (*numbers, *texts)}
        self._header: dict[str, Any] = {}

    @property
    def rows(self) -> int:
        return len(self._phase)

    def feed(self, data: bytes | bytearray | memoryview, /) -> bool:
        self._pieces.append(bytes(data))
        return True

    def columns(self) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
        _Reading(self, b"".join(self._pieces).decode("utf-8", "surrogateescape")).read()
        texts = [text.encode("utf-8", "surrogateescape") for text in self._ids]
        ends, end = array("Q"), 0
        for text in texts:
            end += len(text)
            ends.append(end)
        header = dumps(self._header, default=float)[1:-1].encode()
        found = {**self._columns, **self._times, "phase": self._phase, "texts": b"".join(texts), "text_ends": ends}
        return {**found, **self._places, "header": header}, self._args

    def add_place(self, at: int, size: int) -> None:
        if self._keeps_places and self.rows > len(self._places["at"]):
            self._places["at"].append(at)
            self._places["size"].append(size)

    def add(self, event: Any) -> None:
        """One element of the events."""
        if not isinstance(event, dict):
            self.odd += 1
            return
        phase = event.get("ph")
        if phase in ("s", "t", "f") and not self._keeps_places:
            return
        row = self.rows
        self._phase.append(ord(phase) if isinstance(phase, str) and len(phase) == 1 and phase.isascii() else 0)
        for column, key in (("category", "cat"), ("name", "name"), ("process", "pid"), ("thread", "tid")):
            self._columns[column].append(self._id(event[key]) if key in event else -1)
        for column, key in (("start", "ts"), ("duration", "dur")):
            value = _integer(event.get(key), 1000)
            self._times[column].append(ABSENT if value is None else value)
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        for key in self._args:
            if key in args:
                value = self._id(args[key]) if key in self._texts else _integer(args[key], 1)
                if value is not None:
                    rows, values = self._args[key]
                    rows.append(row)
                    values.append(value)

    def _id(self, value: Any) -> int:
        return self._ids.setdefault(dumps(value, default=str, ensure_ascii=False), len(self._ids))


def _integer(value: Any, factor: int) -> int | None:
    try:
        number = Decimal(value.strip() if isinstance(value, str) else value) * factor
        whole = int(number.to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, TypeError, ValueError, OverflowError):
        return None
    return whole if -(2**63) < whole < 2**63 and not isinstance(value, bool) else None


class _Reading:
    """Reads one value after the other, until the text ends or is not JSON."""

    def __init__(self, scanner: Scanner, text: str) -> None:
        self.scanner, self.text, self.at = scanner, text, 0
        self.counted = (0, 0)
        """A number of characters, and how many bytes they are."""
        self.decode = JSONDecoder(parse_float=Decimal, strict=False).raw_decode

    def read(self) -> None:
        scanner = self.scanner
        try:
            if self.next() == "[":
                scanner.has_events = True
                self.events()
            elif self.next() == "{":
                self.members()
            else:
                raise JSONDecodeError("neither an object nor an array", self.text, self.at)
            scanner.ended = True
        except IndexError:
            pass  # the text ends here
        except JSONDecodeError as error:
            if not _is_cut(error, self.text.rstrip(_SPACE)):
                scanner.broken_at = len(self.text[: self.at].encode("utf-8", "surrogateescape"))
        scanner.offset = len(self.text[: self.at].encode("utf-8", "surrogateescape"))

    def next(self) -> str:
        """The next character that is not a space."""
        while self.text[self.at] in _SPACE:
            self.at += 1
        return self.text[self.at]

    def bytes(self) -> int:
        """Number of bytes up to here."""
        characters, count = self.counted
        self.counted = self.at, count + len(self.text[characters : self.at].encode("utf-8", "surrogateescape"))
        return self.counted[1]

    def value(self) -> Any:
        self.next()
        found, self.at = self.decode(self.text, self.at)
        if self.at == len(self.text):
            raise IndexError  # a value at the end of the text may go on
        return found

    def events(self) -> None:
        self.at += 1
        while self.next() != "]":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self.next()
                begin = self.bytes()
                self.scanner.add(self.value())
                self.scanner.add_place(begin, self.bytes() - begin)
        self.at += 1

    def members(self) -> None:
        self.at += 1
        while self.next() != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            began = self.at
            key = self.value()
            if not isinstance(key, str) or self.next() != ":":
                raise JSONDecodeError("no member", self.text, began)
            self.at += 1
            if key == "traceEvents" and self.next() == "[":
                self.scanner.has_events = True
                self.events()
            else:
                self.scanner._header[key] = self.value()
        self.at += 1


def _is_cut(error: JSONDecodeError, text: str) -> bool:
    """True if the text only ends too early: inside a string or a word, or before something that must follow."""
    left = text[error.pos :]
    in_escape = error.msg.startswith("Invalid \\u") and len(left) <= len("u0000")
    in_word = any(word.startswith(left) for word in ("null", "true", "false", "-Infinity", "Infinity", "NaN"))
    return in_escape or in_word or error.msg.startswith("Unterminated")
