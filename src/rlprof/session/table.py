"""Rows of a session as a list that other tools can take."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rlprof.errors import MissingLibraryError

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")

_LEFT_OUT = "histogram"
"""A field that is no plain value. `row.quantile_ns(0.95)` reads it."""


class Table(list[Row], Generic[Row]):
    """A list of rows that have the same fields. Times are nanoseconds, sizes are bytes."""

    def __init__(self, kind: type[Row], rows: Iterable[Row] = ()) -> None:
        super().__init__(rows)
        names = getattr(kind, "__dataclass_fields__", None) or kind.__struct_fields__  # type: ignore[attr-defined]
        self.columns = tuple(name for name in names if name != _LEFT_OUT)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, for any library of tables: `polars.DataFrame(session.accounts().to_dict())`."""
        return {column: [getattr(row, column) for row in self] for column in self.columns}

    def to_pandas(self) -> pandas.DataFrame:
        """One line per row, one column per field. Needs pandas.

        session.accounts().to_pandas().sort_values("ledger_ns")
        """
        try:
            library: Any = import_module("pandas")
        except ImportError as error:
            raise MissingLibraryError("to_pandas()", "pandas") from error
        frame: pandas.DataFrame = library.DataFrame(self.to_dict(), columns=list(self.columns))
        return frame
