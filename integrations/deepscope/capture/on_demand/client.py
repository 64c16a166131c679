"""Asking one process through its control."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from deepscope.capture.on_demand.control_server import peer, receive, send
from deepscope.capture.on_demand.messages import ControlAnswer, ControlRequest, decode_answer, encode
from deepscope.capture.on_demand.places import ControlEntry, is_own
from deepscope.errors import ControlError

_PATIENCE_SECONDS = 5.0


class GoneError(ControlError):
    """The process is not there any more, or its control server is not."""


class SilentError(ControlError):
    """The process does not answer: it is stopped, or holds its interpreter's lock."""


class Client(Protocol):
    """Somebody at a process's control."""

    entry: ControlEntry

    def ask(self, request: ControlRequest) -> ControlAnswer:
        """Raises `GoneError`, `SilentError`, and `ControlError` for an answer that is none."""
        ...

    def leave(self) -> None: ...


class SocketClient:
    """A connection over a socket; leaving it ends what was asked for."""

    def __init__(self, entry: ControlEntry) -> None:
        self.entry = entry
        self._unheard = 0
        """Requests whose answers have not come so far; they come before the next one's."""
        path = Path(entry.control)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_PATIENCE_SECONDS)
        try:
            if not is_own(path.parent.lstat()) or not is_own(path.lstat()):
                raise ControlError(f"{path}: is not yours")
            self._connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            self._socket.close()
            raise GoneError(f"process {entry.pid} has ended") from None
        except TimeoutError:
            self._socket.close()
            raise self._silent() from None
        except OSError as error:
            self._socket.close()
            raise ControlError(f"{path}: {error.strerror or error}") from None
        if peer(self._socket) not in {os.getuid(), -1}:
            self._socket.close()
            raise ControlError(f"{path}: somebody else answers there")

    def _connect(self, path: Path) -> None:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._socket.connect(str(path))
            except BlockingIOError:  # others stand in line there
                if time.monotonic() > until:
                    raise TimeoutError from None
                time.sleep(0.05)
            else:
                return

    def ask(self, request: ControlRequest) -> ControlAnswer:
        """One request, and its answer."""
        try:
            while self._unheard:
                self._hear()
            send(self._socket, encode(request))
            self._unheard += 1
            words = self._hear()
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise GoneError(f"process {self.entry.pid} has ended") from None
        if words is None:
            raise GoneError(f"process {self.entry.pid} has ended")
        return decode_answer(words)

    def _hear(self) -> bytes | None:
        words = receive(self._socket)
        self._unheard -= 1
        return words

    def _silent(self) -> SilentError:
        return SilentError(f"process {self.entry.pid} does not answer: it is stopped, or busy outside Python")

    def leave(self) -> None:
        with suppress(OSError):
            self._socket.close()
