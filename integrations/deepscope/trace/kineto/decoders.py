"""Processes that decode parts of a large trace; to be started early, as they take their time to be ready.

Imports neither NumPy nor the reader: whoever starts them imports those meanwhile.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from deepscope.processes import HelperProcess, MessageError, ProcessEndedError, cores
from deepscope.trace.kineto.source import likely_json_bytes

if TYPE_CHECKING:
    from types import TracebackType

    from deepscope.trace.kineto.event_columns import Columns

WORTH_BYTES = 128 << 20
"""Bytes of JSON; below it starting the processes (a third of a second of CPU time) takes longer than they save."""
_MOST_WORKERS = 5  # decompressing, cutting and joining are done in the caller's process, and take a sixth of the whole
_WORKER = "deepscope.trace.kineto.decoding_process"


def workers_for(path: str, size_bytes: int) -> int:
    """How many processes beside this one are worth their start for a file of that size; 0 for none."""
    is_large = likely_json_bytes(path, size_bytes) >= WORTH_BYTES
    return min(cores() - 1, _MOST_WORKERS) if is_large else 0


class Decoders:
    """Some running processes, ended when the context is left; `decode` may be called from as many threads."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._started = [HelperProcess.start(_WORKER) for _ in range(workers)]
        self._free: queue.SimpleQueue[HelperProcess | None] = queue.SimpleQueue()
        """The processes that are free, to be taken and put back; None in the place of one that is gone."""
        for process in self._started:
            self._free.put(process)

    def __enter__(self) -> Decoders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._started:
            if process is not None:
                process.end()

    def decode(self, text: bytes) -> Columns | None:
        """The columns of a JSON array of events, by the next free process; None where it cannot do it or is gone."""
        import pickle

        process = self._free.get()
        part: Columns | None = None
        try:
            if process is not None:
                part = pickle.loads(process.ask(text))  # noqa: S301  made by this package's own process
        except (ProcessEndedError, MessageError, MemoryError, EOFError, pickle.UnpicklingError):
            process = None
        finally:
            self._free.put(process)
        return part
