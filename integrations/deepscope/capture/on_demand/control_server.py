"""The control server: a Unix socket that its user alone can reach, and a thread that sleeps until somebody connects."""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from deepscope.capture.on_demand.messages import (
    LIMIT_BYTES,
    ControlAnswer,
    ControlRequest,
    as_json,
    decode_answer,
    decode_request,
    encode,
)
from deepscope.capture.on_demand.places import ControlEntry, is_own, make_private, write_private
from deepscope.capture.process_hooks.open_recorders import abandoned_in_children
from deepscope.errors import ControlError

_LENGTH = struct.Struct("!I")
_MOST_AT_ONCE = 8
_SILENCE_SECONDS = 60
"""A client that sends nothing for so long is gone."""
_CLOSE_TIMEOUT_SECONDS = 1.0
"""How long the end of the process waits for clients to read what became of the window."""


class ControlServer:
    """Answers requests at a socket from `open` to `close`, each connection on a thread of its own.

    `let_go` is told the id of the window that a connection asked for, when the connection ends.
    """

    def __init__(
        self,
        path: Path,
        entry: ControlEntry,
        answer: Callable[[ControlRequest], ControlAnswer],
        let_go: Callable[[str], None],
    ) -> None:
        self.path = path
        self._entry = entry
        self._answer = answer
        self._let_go = let_go
        self._socket: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._pid = os.getpid()
        self._is_unconnected = threading.Event()
        self._is_unconnected.set()

    def open(self) -> None:
        """Raises `OSError` or `ControlError` where no socket can be had."""
        make_private(self.path.parent)
        with suppress(OSError):
            self.path.unlink()
        control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            control.bind(str(self.path))  # in a folder that nobody else can enter
            self.path.chmod(0o600)
            control.listen(_MOST_AT_ONCE)
            self._socket = control
            write_private(self._entry_path, as_json(self._entry))
            _start(self._wait, "deepscope-control")
        except BaseException:
            control.close()
            self._socket = None
            raise
        _servers.add(self)

    @property
    def _entry_path(self) -> Path:
        return self.path.with_suffix(".json")

    def close(self) -> None:
        """Give clients time to read what became of their window; then the control server is gone."""
        if os.getpid() != self._pid or self._socket is None:
            return
        self._is_unconnected.wait(_CLOSE_TIMEOUT_SECONDS)
        self._shut()
        for path in (self._entry_path, self.path):
            with suppress(OSError):
                path.unlink()

    def _shut(self) -> None:
        control, self._socket = self._socket, None
        if control is not None:
            with suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)  # else accept() on the other thread would go on
            control.close()
        _servers.discard(self)

    def abandon(self) -> None:
        """In a forked child: the control server is the parent's."""
        for one in (self._socket, *self._connections):
            if one is not None:
                with suppress(OSError):
                    one.close()  # not shutdown, which the parent would notice
        self._socket = None
        self._connections.clear()

    def _wait(self) -> None:
        control = self._socket
        while control is not None and self._is_open(control):
            try:
                connection, _ = control.accept()
            except OSError:
                if self._is_open(control):
                    time.sleep(1)  # out of file descriptors, say
                continue
            if len(self._connections) >= _MOST_AT_ONCE or peer(connection) != os.getuid():
                connection.close()
                continue
            self._connections.add(connection)
            self._is_unconnected.clear()
            try:
                _start(lambda one=connection: self._serve(one), "deepscope-control-client")  # type: ignore[misc]
            except RuntimeError:
                self._end_connection(connection)

    def _is_open(self, control: socket.socket) -> bool:
        return self._socket is control

    def _serve(self, connection: socket.socket) -> None:
        asked = ""
        try:
            connection.settimeout(_SILENCE_SECONDS)
            while (words := receive(connection)) is not None:
                request = decode_request(words)
                answer = self._answer(request)
                if answer.accepted and request.kind in {"start", "now"}:
                    asked = request.id
                send(connection, encode(answer))
        except ControlError as error:
            with suppress(OSError, ControlError):
                send(connection, encode(ControlAnswer(accepted=False, problem=str(error)[:1000])))
        except OSError:
            pass
        except Exception as error:  # noqa: BLE001  nothing that a client does ends the program
            with suppress(Exception):
                send(
                    connection, encode(ControlAnswer(accepted=False, problem=f"{type(error).__name__}: {error}"[:1000]))
                )
        finally:
            if asked:
                self._let_go(asked)
            self._end_connection(connection)

    def _end_connection(self, connection: socket.socket) -> None:
        self._connections.discard(connection)
        with suppress(OSError):
            connection.close()
        if not self._connections:
            self._is_unconnected.set()


def _start(action: Callable[[], None], name: str) -> None:
    """A thread that takes no signals: they are for the program's own."""

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        action()

    threading.Thread(target=run, name=name, daemon=True).start()


def send(connection: socket.socket, words: bytes) -> None:
    """One message, its length first."""
    connection.sendall(_LENGTH.pack(len(words)) + words)


def receive(connection: socket.socket) -> bytes | None:
    """One message; None where the other side has gone. Raises `ControlError` for one that is too long or ends early."""
    head = _receive_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > LIMIT_BYTES:
        raise ControlError(f"a message of {length:,} bytes; {LIMIT_BYTES:,} are the limit")
    words = _receive_exactly(connection, length)
    if words is None and length:
        raise ControlError("a message that ends early")
    return words or b""


def _receive_exactly(connection: socket.socket, count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            return None
        found += piece
    return bytes(found)


def peer(connection: socket.socket) -> int:
    """The user on the other side; -1 where the system does not tell."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            words = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", words)[1])
        words = connection.getsockopt(0, 1, struct.calcsize("2Ih16I"))  # macOS, BSD: SOL_LOCAL, LOCAL_PEERCRED
        return int(struct.unpack_from("2I", words)[1])
    except (OSError, struct.error):
        return -1


_servers: weakref.WeakSet[ControlServer] = abandoned_in_children()


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
        self._unread = 0
        """Requests whose answers have not come so far; they come before the next one's."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._enter(Path(entry.control))
        except BaseException:
            self._socket.close()
            raise

    def _enter(self, path: Path) -> None:
        self._socket.settimeout(_PATIENCE_SECONDS)
        try:
            if not is_own(path.parent.lstat()) or not is_own(path.lstat()):
                raise ControlError(f"{path}: is not yours")
            self._connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            raise self._gone() from None
        except TimeoutError:
            raise self._silent() from None
        except OSError as error:
            raise ControlError(f"{path}: {error.strerror or error}") from None
        if peer(self._socket) not in {os.getuid(), -1}:
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
        try:
            while self._unread:
                self._read_answer()
            send(self._socket, encode(request))
            self._unread += 1
            words = self._read_answer()
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            raise self._gone() from None
        if words is None:
            raise self._gone()
        return decode_answer(words)

    def _read_answer(self) -> bytes | None:
        words = receive(self._socket)
        self._unread -= 1
        return words

    def _gone(self) -> GoneError:
        return GoneError(f"process {self.entry.pid} has ended")

    def _silent(self) -> SilentError:
        return SilentError(f"process {self.entry.pid} does not answer: it is stopped, or busy outside Python")

    def leave(self) -> None:
        with suppress(OSError):
            self._socket.close()
