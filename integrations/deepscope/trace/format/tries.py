"""The file beside a trace that keeps what was tried on its program: its name."""

from __future__ import annotations

from pathlib import Path

from deepscope.trace.format.run_account import beside

ENDING = ".deepscope-tries"


def tries_path(trace: Path) -> Path:
    """The file beside a trace; it ends in another way, so that nothing takes it for one."""
    return beside(trace, ENDING)
