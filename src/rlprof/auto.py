"""`import rlprof.auto` as a script's first line does what `rlprof run` does, from inside."""

from __future__ import annotations

import os

from rlprof.recording.environment import switch_on
from rlprof.run.start import start

switch_on(os.environ)
start()
