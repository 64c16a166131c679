"""A span of a program by time, whatever it does: for programs without steps.

A thread waits until it is time, and has the main thread open the window, and close it, between two instructions.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from deepscope.capture.notices import warn
from deepscope.capture.on_demand.messages import ControlRequest
from deepscope.capture.on_demand.start import OnDemand

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.options import OptionKeywords

_ID = "0"


class Span:
    """A context manager that records `seconds` of the block, from `delay` seconds behind its begin on."""

    def __init__(
        self,
        folder: Path,
        delay: float,
        seconds: float,
        *,
        filename: str | None = None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        self.traces: list[Path] = []
        self._on_demand = OnDemand(folder, filename=filename, **options)
        self._dormant = self._on_demand.dormant
        self._delay = delay
        self._seconds = seconds
        self._is_over = threading.Event()
        self._is_saved = threading.Event()
        self._is_open = threading.Event()
        self._dormant.on_open = self._is_open.set
        self._dormant.on_over = self._tell_over

    def __enter__(self) -> Span:
        import deepscope.capture.recorder  # noqa: F401  not when it is time

        self._on_demand.count_run()
        threading.Thread(target=self._run, name="deepscope-span", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._dormant.finish()
        self._on_demand.end_run()
        answer = self._dormant.answer(ControlRequest("look"))
        if answer.state == "dormant":
            warn(f"nothing was recorded: the program ended before the {self._delay:g} s of --after were over")
            return
        self._is_saved.wait()
        self.traces += [Path(one) for one in self._dormant.answer(ControlRequest("look")).traces]

    def _tell_over(self) -> None:
        self._is_saved.set()
        self._is_open.set()

    def _run(self) -> None:
        if self._is_over.wait(self._delay):
            return
        self._dormant.answer(ControlRequest("now", id=_ID, warmup=0))
        self._is_open.wait()
        if not self._is_over.wait(self._seconds):
            self._dormant.answer(ControlRequest("stop", id=_ID))
