"""A control server made of files beside the traces: for containers, and for hosts that share a folder.

Nobody waits at it: the training thread looks for a request at a step, at most once a second while nobody asks. Requests
and answers are files that only their owner reads, in a folder that only the owner enters; what another user puts there
all the same is not read.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from deepscope.capture.naming import host_name
from deepscope.capture.on_demand.control_server import GoneError, SilentError
from deepscope.capture.on_demand.messages import (
    LIMIT_BYTES,
    ControlAnswer,
    ControlRequest,
    as_json,
    decode_answer,
    decode_request,
    encode,
)
from deepscope.capture.on_demand.places import (
    CONTROL_FOLDER,
    ControlEntry,
    entries,
    make_private,
    read_private,
    write_private,
)
from deepscope.errors import ControlError, DeepScopeError

_IDLE_SECONDS = 1.0
_BUSY_SECONDS = 0.05
_SILENCE_SECONDS = 60.0
_MORE_SECONDS = 2.0
"""For so long after a request another one is expected: a recording is asked for by several."""
_PATIENCE_SECONDS = 60.0
_AGAIN_SECONDS = 2.0
"""After so long a request is written once more, if it is gone and has no answer."""


def _name(entry: ControlEntry) -> str:
    return f"{entry.host}-{entry.pid}"


def file_entries(folder: Path) -> Iterator[tuple[Path, ControlEntry]]:
    """The control files beside the traces in a folder, of whichever host."""
    for path, entry in entries(folder / CONTROL_FOLDER):
        if entry.control == "files" and path.name == f"{_name(entry)}.json":
            yield path, entry


class ControlFiles:
    """Answers requests at steps: `look` is called at each of them."""

    def __init__(
        self,
        folder: Path,
        entry: ControlEntry,
        answer: Callable[[ControlRequest], ControlAnswer],
        let_go: Callable[[str], None],
    ) -> None:
        self._entry = msgspec.structs.replace(entry, host=host_name(), control="files")
        self._folder = folder / CONTROL_FOLDER
        self._ask = self._folder / f"{_name(self._entry)}.ask"
        self._answer = answer
        self._let_go = let_go
        self._next = 0.0
        self._heard = -math.inf
        self._asked = ""
        self._pid = os.getpid()

    def open(self) -> None:
        """Raises `OSError` or `ControlError` where the files cannot be written."""
        make_private(self._folder)
        with suppress(OSError):
            self._ask.unlink()
        write_private(self._ask.with_suffix(".json"), as_json(self._entry))

    def close(self) -> None:
        """Whoever waits for an answer gets it; then the control server is gone."""
        if os.getpid() == self._pid:
            self._next = 0.0
            self.look()
            for path in (self._ask.with_suffix(".json"), self._ask):
                with suppress(OSError):
                    path.unlink()
            with suppress(OSError):
                self._folder.rmdir()

    def look(self) -> None:
        """Answers a request that has come; raises nothing."""
        now = time.monotonic()
        if now < self._next or os.getpid() != self._pid:
            return
        is_busy = self._asked or now - self._heard < _MORE_SECONDS
        self._next = now + (_BUSY_SECONDS if is_busy else _IDLE_SECONDS)
        try:
            os.stat(self._ask)  # noqa: PTH116  the one thing that an idle step does
        except OSError:
            if self._asked and now - self._heard > _SILENCE_SECONDS:
                self._let_go(self._asked)
                self._asked = ""
            return
        with suppress(Exception):
            self._heard = now
            self._next = now + _BUSY_SECONDS
            self._serve()

    def _serve(self) -> None:
        words = read_private(self._ask, LIMIT_BYTES)
        self._ask.unlink()
        if words is None:
            return
        number = 0
        try:
            request = decode_request(words)
            number = request.number
            answer = self._answer(request)
            if answer.accepted and request.kind in {"start", "now"}:
                self._asked = request.id
            elif answer.state in {"saved", "failed", "idle"}:
                self._asked = ""
        except DeepScopeError as error:
            answer = ControlAnswer(accepted=False, problem=str(error)[:1000])
        answer.number = number
        write_private(self._ask.with_suffix(".answer"), encode(answer))


class FileClient:
    """A client that asks through files; leaving it ends what was asked for."""

    def __init__(self, entry: ControlEntry, path: Path) -> None:
        self.entry = entry
        self._path = path
        self._ask = path.with_suffix(".ask")
        self._answer = path.with_suffix(".answer")
        self._asked = ""
        self._state = "idle"

    def ask(self, request: ControlRequest) -> ControlAnswer:
        number = time.time_ns()
        words_asked = encode(msgspec.structs.replace(request, number=number))
        self._write(words_asked)
        until = time.monotonic() + _PATIENCE_SECONDS
        again = time.monotonic() + _AGAIN_SECONDS
        while True:
            if time.monotonic() > again and not self._ask.exists():  # or another client's took its place
                self._write(words_asked)
                again = time.monotonic() + _AGAIN_SECONDS
            is_there = self._path.exists()
            words = read_private(self._answer, LIMIT_BYTES)
            if words is not None and (answer := decode_answer(words)).number == number:
                break
            if not is_there:
                raise GoneError(f"process {self.entry.pid} on {self.entry.host} has ended")
            if time.monotonic() > until:
                raise SilentError(
                    f"process {self.entry.pid} on {self.entry.host} has come to no step for "
                    f"{_PATIENCE_SECONDS:.0f} s; if it has ended, remove {self._path}"
                )
            time.sleep(_BUSY_SECONDS)
        if answer.accepted and request.kind in {"start", "now"}:
            self._asked = request.id
        self._state = answer.state
        answer.traces = [self._local_path(path) for path in answer.traces]
        return answer

    def _write(self, words: bytes) -> None:
        try:
            write_private(self._ask, words)
        except OSError as error:
            raise ControlError(f"{self._ask}: {error.strerror or error}") from None

    def _local_path(self, trace: str) -> str:
        """A trace by the name that its folder has on this side."""
        path = self._path.parent.parent / Path(trace).name
        return str(path) if path.exists() else trace

    def leave(self) -> None:
        """What is still open is to end; its files go."""
        with suppress(OSError, ControlError):
            self._answer.unlink(missing_ok=True)
            self._ask.unlink(missing_ok=True)
            if self._asked and self._state not in {"saved", "failed"} and self._path.exists():
                write_private(self._ask, encode(ControlRequest("stop", id=self._asked)))
