"""The files beside a trace: their names. They end in another way, so that nothing takes them for one."""

from __future__ import annotations

import re
from pathlib import Path

_ACCOUNT, _TRIES = ENDINGS_BESIDE = (".deepscope-run", ".deepscope-tries")
_TRACE_ENDING = re.compile(r"(\.pt\.trace)?\.json(\.gz)?$")


def account_path(trace: Path) -> Path:
    """The file that accounts for the trace's whole run."""
    return _beside(trace, _ACCOUNT)


def tries_path(trace: Path) -> Path:
    """The file that keeps what was tried on the trace's program."""
    return _beside(trace, _TRIES)


def files_beside(trace: Path) -> tuple[Path, ...]:
    """All that goes with the trace where it is removed, whether it is there or not."""
    return account_path(trace), tries_path(trace)


def _beside(trace: Path, ending: str) -> Path:
    return trace.with_name(f"{_TRACE_ENDING.sub('', trace.name)}{ending}")
