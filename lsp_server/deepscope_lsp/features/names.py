"""Names that go over the wire more than once; `commands` has the names of all commands."""

from __future__ import annotations

SOURCE = "DeepScope"
HOT_LINE = "hot-line"
"""The code of the diagnostics on hot lines; findings have codes of their own."""
SHOW_CALLERS = "deepscope.showCallers"
HIDE_FINDING = "deepscope.hideFinding"
SHOW_TRY_COMMAND = "deepscope.showTryCommand"
STATUS = "$/deepscope/status"
"""The notification of a changed status; since it begins with `$/`, an editor that does not know it ignores it."""
