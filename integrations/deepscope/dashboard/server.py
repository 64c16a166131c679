"""The dashboard's own server: on this machine's loopback, for whoever has its token.

What is served is read-only. A page of another origin cannot ask it: the token stands in no cookie, the name in `Host`
must be this machine's (a foreign name that resolves to the loopback is refused), and so must `Origin`.
"""

from __future__ import annotations

import gzip
import hmac
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import msgspec

from deepscope.dashboard.application import Application
from deepscope.dashboard.library import Library

POLICY_IN_FRAMES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
POLICY = f"{POLICY_IN_FRAMES}; frame-ancestors 'none'"
TOKEN_HEADER = "HTTP_X_DEEPSCOPE_TOKEN"  # noqa: S105  its name
ASSETS = {
    "": ("index.html", "text/html; charset=utf-8"),
    "index.html": ("index.html", "text/html; charset=utf-8"),
    "dashboard.js": ("dashboard.js", "text/javascript; charset=utf-8"),
    "dashboard.css": ("dashboard.css", "text/css; charset=utf-8"),
}
"""What the pages are made of, by the last part of their address: the same for everybody, so without a token."""
WORTH_PACKING_BYTES = 2_000
MOST_WORDS = 50
"""Of a question."""
MOST_AT_ONCE = 64
"""Connections that are served side by side. One more ends the oldest that has not asked yet, or is slow to read."""
PATIENCE_SECONDS = 20
"""For the next bytes of a connection, and for a place among those that are served."""
ASKING_SECONDS = 10
"""For a whole request: a client that sends a byte now and then is ended all the same."""
SLOW_SECONDS = 5
"""After so long a connection that has asked may be ended for another one, where there is no place."""

_LOG = logging.getLogger(__name__)
_Start = Callable[[str, list[tuple[str, str]]], Any]


@cache
def asset(name: str) -> bytes:
    """A file of the bundle."""
    return (files("deepscope.dashboard") / "bundle" / name).read_bytes()


class Pages:
    """The pages and their questions as a WSGI application.

    Args:
        application: what answers.
        token: what `X-DeepScope-Token` must say; "" asks for none, where another server has checked already.
        hosts: names that `Host` may have; empty for any.
        policy: the pages' content security policy.
        host: what the pages take for their host.
    """

    def __init__(
        self,
        application: Application,
        *,
        token: str = "",
        hosts: Iterable[str] = (),
        policy: str = POLICY,
        host: str = "server",
    ) -> None:
        self._application = application
        self._token = token
        self._hosts = frozenset(hosts)
        self._policy = policy
        self._host = host

    def admit(self, hosts: Iterable[str]) -> None:
        """From now on answers under these names, too, where names are checked."""
        if self._hosts:
            self._hosts |= frozenset(hosts)

    def __call__(self, environ: dict[str, Any], start: _Start) -> list[bytes]:
        status, kind, body = self._respond(environ)
        headers = [
            ("Content-Type", kind),
            ("Content-Security-Policy", self._policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ]
        if len(body) > WORTH_PACKING_BYTES and "gzip" in environ.get("HTTP_ACCEPT_ENCODING", ""):
            body = gzip.compress(body, compresslevel=1, mtime=0)
            headers.append(("Content-Encoding", "gzip"))
        headers.append(("Content-Length", str(len(body))))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "GET, HEAD"))
        start(f"{status.value} {status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _respond(self, environ: dict[str, Any]) -> tuple[HTTPStatus, str, bytes]:
        refusal = self._refusal(environ)
        if refusal:
            return HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", refusal.encode()
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"this server only shows"
        path = environ.get("PATH_INFO", "/")
        folder, _, name = path.rpartition("/")
        if folder.endswith("/api"):
            return self._answer(name, environ)
        if name in ASSETS:  # in any folder: a proxy may have put its own in front
            file, kind = ASSETS[name]
            text = asset(file)
            if file == "index.html":
                text = text.replace(b'data-door="server"', f'data-door="{self._host}"'.encode())
            return HTTPStatus.OK, kind, text
        return HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"nothing is here"

    def _answer(self, name: str, environ: dict[str, Any]) -> tuple[HTTPStatus, str, bytes]:
        if self._token and not hmac.compare_digest(environ.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            return HTTPStatus.UNAUTHORIZED, "application/json", b'{"error":"the token in the address is wrong"}'
        try:
            words = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True, max_num_fields=MOST_WORDS)
        except ValueError:
            return HTTPStatus.BAD_REQUEST, "application/json", b'{"error":"the question has too many words"}'
        reply = self._application.answer(name, dict(words))
        return HTTPStatus(reply.status), "application/json", reply.body

    def _refusal(self, environ: dict[str, Any]) -> str:
        """Why a request is not answered; "" where it is."""
        host = environ.get("HTTP_HOST", "")
        if self._hosts and _hostname(f"//{host}") not in self._hosts:
            return "this name is not this server's"
        origin = environ.get("HTTP_ORIGIN", "")
        if origin and origin.partition("://")[2] != host:
            return "other origins are not answered"
        is_page = environ.get("PATH_INFO", "/").rpartition("/")[2] in {"", "index.html"}
        if environ.get("HTTP_SEC_FETCH_SITE", "same-origin") not in {"same-origin", "none"} and not is_page:
            return "other sites are not answered"
        return ""


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *arguments: Any) -> None:
        self._places = BoundedSemaphore(MOST_AT_ONCE)
        self._lock = Lock()
        self._asking: dict[socket.socket, float] = {}
        self._answered: dict[socket.socket, float] = {}
        """Open connections before and after their request was read, with their beginnings; the oldest first."""
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """Without the reverse look-up of the host's name, which takes seconds where there is no name server."""
        if os.name != "nt":  # where it would let another program listen, too
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of its own, when there is a place."""
        if not self._places.acquire(blocking=False):
            self._end_oldest()
            if not self._places.acquire(timeout=PATIENCE_SECONDS):
                self.shutdown_request(request)
                return
        with self._lock:
            self._asking[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except Exception:  # no thread could be started; after Ctrl-C there may be one, which leaves its place itself
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers, and makes place for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def has_asked(self, request: socket.socket) -> None:
        """The whole request of a connection was read."""
        with self._lock:
            self._answered[request] = self._asking.pop(request, time.monotonic())

    def service_actions(self) -> None:
        """Ends connections that take too long to ask; called between requests, and while there are none."""
        latest = time.monotonic() - ASKING_SECONDS
        with self._lock:
            for request in [one for one, begun in self._asking.items() if begun < latest]:
                _end(request)

    def _end_oldest(self) -> None:
        with self._lock:
            if self._asking:
                _end(next(iter(self._asking)))
                return
            oldest = next(iter(self._answered.items()), None)
            if oldest is not None and oldest[1] < time.monotonic() - SLOW_SECONDS:
                _end(oldest[0])

    def _leave(self, request: socket.socket) -> None:
        with self._lock:
            self._asking.pop(request, None)
            self._answered.pop(request, None)
        self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """What a client does to its connection is no news for the terminal."""
        del request, client_address
        _LOG.debug("a request ended early: %s", sys.exc_info()[1])


def _end(connection: socket.socket) -> None:
    """Ends a connection, whose thread then leaves its place."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _IPv6Server(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_SECONDS
    protocol_version = "HTTP/1.0"

    def parse_request(self) -> bool:
        """Reads the head of the request; there is no body that matters."""
        is_whole = super().parse_request()
        self.server.has_asked(self.connection)  # type: ignore[attr-defined]  # it is a `_Server`
        return is_whole

    def address_string(self) -> str:
        return str(self.client_address[0])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        del format, args
        # Without the query, in which a token may stand.
        _LOG.debug("%s %s", self.command, self.path.partition("?")[0])


def serve(pages: Pages, host: str, port: int) -> WSGIServer:
    """A server that listens; `serve_forever` answers.

    Raises:
        OSError: the port is taken, or the address is none of this machine's.
    """
    kind = _IPv6Server if ":" in host else _Server
    server = kind((host, port), _Handler)
    server.set_app(pages)
    return server


class ViewRequest(msgspec.Struct, frozen=True):
    """What an editor tells a dashboard that it started; it takes the place of the one before."""

    paths: list[str]
    """Traces, folders or fsspec URLs."""
    first: str = ""
    """A trace of the run that is shown where none is chosen."""
    hosts: list[str] = []
    """Names, beside this machine's own, under which the editor's proxy is reached."""


def follow_line(line: bytes, library: Library, pages: Pages) -> None:
    """Takes in one line; one of another shape changes nothing."""
    try:
        shown = msgspec.json.decode(line, type=ViewRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        if line.strip():
            _LOG.warning("not understood: %s", error)
        return
    library.show(shown.paths, shown.first)
    pages.admit(shown.hosts)


def follow(
    lines: Iterable[bytes], library: Library, pages: Pages, *, shown: Callable[[], None], ended: Callable[[], None]
) -> None:
    """Takes in lines, each a `ViewRequest` as JSON, until they end with the editor."""
    try:
        for line in lines:
            follow_line(line, library, pages)
            shown()
    finally:
        ended()
