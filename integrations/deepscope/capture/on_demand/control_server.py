"""Control servers: a Unix socket that its user alone can reach, or files beside the traces.

At the socket a thread sleeps until somebody connects. The files are for containers, and for hosts that share a folder:
nobody waits at them, the training thread looks for a request at a step, at most once a second while nobody asks. They
are files that only their owner reads, in a folder that only the owner enters; what another user puts there all the same
is not read.
"""

from __future__ import annotations

import math
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

import msgspec

from deepscope.capture.naming import host_name
from deepscope.capture.on_demand.protocol import (
    CONTROL_FOLDER,
    LIMIT_BYTES,
    ControlAnswer,
    ControlEntry,
    ControlRequest,
    as_json,
    decode_request,
    encode,
    make_private,
    read_private,
    write_private,
)
from deepscope.capture.process_hooks.open_recorders import abandoned_in_children
from deepscope.errors import ControlError, DeepScopeError

_LENGTH = struct.Struct("!I")
_MOST_AT_ONCE = 8
_SILENCE_SECONDS = 60.0
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
                if answer.accepted and request.opens_window:
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


_IDLE_SECONDS = 1.0
BUSY_SECONDS = 0.05
"""Between two looks for a file while one is expected."""
_MORE_SECONDS = 2.0
"""For so long after a request another one is expected: a recording is asked for by several."""


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
        self._ask = self._folder / f"{self._entry.files_name}.ask"
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
        self._next = now + (BUSY_SECONDS if is_busy else _IDLE_SECONDS)
        try:
            os.stat(self._ask)  # noqa: PTH116  the one thing that an idle step does
        except OSError:
            if self._asked and now - self._heard > _SILENCE_SECONDS:
                self._let_go(self._asked)
                self._asked = ""
            return
        with suppress(Exception):
            self._heard = now
            self._next = now + BUSY_SECONDS
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
            if answer.accepted and request.opens_window:
                self._asked = request.id
            elif answer.state in {"saved", "failed", "idle"}:
                self._asked = ""
        except DeepScopeError as error:
            answer = ControlAnswer(accepted=False, problem=str(error)[:1000])
        answer.number = number
        write_private(self._ask.with_suffix(".answer"), encode(answer))
