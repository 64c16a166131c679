"""The process in which a trace is read: `python -m deepscope_lsp.engine.loading_process REQUEST RESULT`.

It writes JSON lines (`{"done": bytes, "total": bytes}`; last, where one came, an error's `kind` and `arguments`) and
leaves the profile in the file RESULT.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import msgspec

from deepscope.errors import DeepScopeError
from deepscope.store.load import load_profile, load_selection
from deepscope_lsp.engine.loading import Report, Request

__all__: list[str] = []

REPORT_SECONDS = 0.05


class Reporter:
    """Writes progress, at most twenty times a second."""

    def __init__(self) -> None:
        self._next = 0.0

    def progress(self, done: int, total: int) -> None:
        """Says how much has been read."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + REPORT_SECONDS
            self.write(Report(done=done, total=total))

    def write(self, report: Report) -> None:
        """Writes one line."""
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()


def main(arguments: list[str]) -> int:
    """Loads one profile; answers the exit code."""
    reporter = Reporter()
    request = msgspec.json.decode(arguments[0], type=Request)
    try:
        load = (
            partial(load_profile, request.path)
            if request.selection is None
            else partial(load_selection, request.selection)
        )
        profile = load(
            step=request.step,
            rank=request.rank,
            stage=request.stage,
            partial=request.partial,
            progress=reporter.progress,
        )
        Path(arguments[1]).write_bytes(msgspec.msgpack.encode(profile))
    except DeepScopeError as error:
        reporter.write(Report(kind=type(error).__name__, arguments=list(error.args)))
    except MemoryError:
        reporter.write(Report(kind="TraceError", arguments=[f"{request.path}: not enough memory to read it"]))
    except Exception as error:  # noqa: BLE001 - a trace is input from outside: whatever it breaks is told in one line
        reporter.write(Report(kind="TraceError", arguments=[f"{request.path}: {type(error).__name__}: {error}"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
