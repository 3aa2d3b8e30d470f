"""The ledger in plain Python: the C core's specification, and its substitute where no compiler was available.

It has the same surface, keeps the same account to the nanosecond, and costs about a hundred times as much per span.
"""

from rlprof.ledger.twin.ledger import Ledger
from rlprof.ledger.twin.span import Span, Timed

__all__ = ["Ledger", "Span", "Timed"]
