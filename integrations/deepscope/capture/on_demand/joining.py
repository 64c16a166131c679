"""A running program joined in flight: its control server opens on a thread of our own, beside the training loop."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from types import FrameType

from deepscope.capture.on_demand.start import OnDemand, current
from deepscope.errors import ControlError

_NEEDED = (
    "deepscope.capture.recorder",
    "deepscope.capture.process_hooks.optimizer_steps",
    "deepscope.store",  # reads traces' heads, for the folder's upkeep
    "deepscope.trace.read",
)
"""Imported at once: the package may be lent for the moment, and what no step waits for is done before."""
_PATIENCE_SECONDS = 20.0
_LONG_SECONDS = 100.0


def join(folder: str) -> None:
    """Makes this process one that can be recorded on demand. Raises `ControlError`, and torch's own errors."""
    for module in _NEEDED:
        import_module(module)
    if current() is None:
        made = OnDemand(Path(folder))
        made.dormant.is_joined = True
        made.open(listen=lambda: _between_hooks(made))
        if not made.is_open:
            problem = made.problem
            made.close()
            raise ControlError(problem)


def _between_hooks(made: OnDemand) -> None:
    """Listens to optimizers at a moment when none of them is about to call its hooks.

    torch walks through its dict of hooks, and raises into the step if that grows meanwhile. So no other thread runs
    from the look at the stacks to the change.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    before = sys.getswitchinterval()
    while True:
        sys.setswitchinterval(_LONG_SECONDS)
        try:
            if not _in_hooks() or time.monotonic() > until:
                made.listen()
                return
        finally:
            sys.setswitchinterval(before)
        time.sleep(0.001)


def _in_hooks() -> bool:
    """Whether a thread is in an optimizer's step, and there are hooks that it may be walking through."""
    optimizer = sys.modules["torch.optim.optimizer"]
    file = optimizer.__file__
    for frame in sys._current_frames().values():
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_filename == file and one.f_code.co_name == "wrapper":
                return True
            one = one.f_back
    return False
