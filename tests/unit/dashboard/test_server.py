"""The server: who is let in, and that nobody who knocks wrongly ends it."""

from __future__ import annotations

import gzip
import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import built_profiles
from deepscope.dashboard import server as module
from deepscope.dashboard.application import QUESTIONS, Application
from deepscope.dashboard.background import NotYetError
from deepscope.dashboard.html_file import OneProfile
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.server import ASSETS, Pages, asset, serve
from deepscope.errors import NoTraceError, OptionError, TraceError, TruncatedTraceError

TOKEN = "the-token"
HOSTS = ("127.0.0.1", "localhost", "::1")
OK = {"X-DeepScope-Token": TOKEN}


def running(host: str = "127.0.0.1", hosts: tuple[str, ...] = HOSTS, token: str = TOKEN) -> Iterator[int]:
    application = Application(OneProfile(built_profiles.training()))
    server = serve(Pages(application, token=token, hosts=hosts), host, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    yield from running()


class Got:
    """A response that was read."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"])


def asked(port: int, path: str, headers: Mapping[str, str] = {}, method: str = "GET", host: str = "127.0.0.1") -> Got:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request(method, path, headers=dict(headers))
        return Got(connection.getresponse())
    finally:
        connection.close()


def told(port: int, request: bytes) -> bytes:
    """What comes back to these very bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        try:
            while part := connection.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


def is_alive(port: int) -> bool:
    return asked(port, "/api/header", OK).status == 200


@pytest.mark.parametrize("name", ASSETS)
def test_the_pages_come_without_a_token_and_with_a_policy(port: int, name: str) -> None:
    got = asked(port, f"/{name}")
    assert got.status == 200
    assert got.body == asset(ASSETS[name][0])
    policy = dict(rule.strip().split(" ", 1) for rule in got.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["Referrer-Policy"] == "no-referrer"
    assert got.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert got.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in got.headers
    assert "Set-Cookie" not in got.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-DeepScope-Token": ""},
        {"X-DeepScope-Token": "the-tokeN"},
        {"X-DeepScope-Token": TOKEN + "x"},
        {"X-DeepScope-Token": "\u00e9"},
        {"Authorization": f"Bearer {TOKEN}"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
def test_answers_need_the_token_in_its_header(port: int, headers: dict[str, str]) -> None:
    got = asked(port, f"/api/header?token={TOKEN}", headers)
    assert got.status == 401
    assert b"train" not in got.body
    assert asked(port, "/api/no_such_question", headers).status == 401  # nor do they tell what there is


def test_the_token_is_compared_in_constant_time(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []
    compare = module.hmac.compare_digest
    monkeypatch.setattr(module.hmac, "compare_digest", lambda *pair: (seen.append(pair), compare(*pair))[1])
    assert asked(port, "/api/runs", {"X-DeepScope-Token": "wrong"}).status == 401
    assert seen == [(b"wrong", TOKEN.encode())]


@pytest.mark.parametrize("path", ["/", "/dashboard.js", "/api/header"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "[::2]:80",
        "evil.example:127.0.0.1",
        "0.0.0.0",
        "",
        "[",
        "127.0.0.1@evil.example",
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(port: int, path: str, host: str) -> None:
    assert asked(port, path, {**OK, "Host": host}).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1234", "LOCALHOST", "[::1]:99"])
def test_this_machines_names_are_answered_at_any_port_as_forwarding_needs(port: int, host: str) -> None:
    assert asked(port, "/api/header", {**OK, "Host": host}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost.evil.example", "http://[", "x"])
def test_another_origin_is_refused(port: int, origin: str) -> None:
    for path in ("/", "/api/header"):
        assert asked(port, path, {**OK, "Origin": origin}).status == 403
    other = {"Origin": "http://localhost:1"}
    assert asked(port, "/api/header", {**OK, **other}).status == 403, "another port is another origin"


def test_the_pages_own_origin_is_answered(port: int) -> None:
    assert asked(port, "/api/header", {**OK, "Origin": f"http://127.0.0.1:{port}"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_link_to_the_page_and_nothing_else(port: int, site: str) -> None:
    headers = {**OK, "Sec-Fetch-Site": site}
    assert asked(port, "/", headers).status == 200
    assert [asked(port, path, headers).status for path in ("/dashboard.js", "/api/header")] == [403, 403]
    for own in ("same-origin", "none"):
        assert asked(port, "/api/header", {**OK, "Sec-Fetch-Site": own}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X"])
def test_nothing_can_be_changed(port: int, method: str) -> None:
    for path in ("/", "/api/header"):
        got = asked(port, path, OK, method)
        assert (got.status, got.headers["Allow"]) == (405, "GET, HEAD")


def test_head_tells_all_but_the_body(port: int) -> None:
    for path in ("/", "/dashboard.js", "/api/overview"):
        full, head = asked(port, path, OK), asked(port, path, OK, "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Length"] == full.headers["Content-Length"] == str(len(full.body))


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2f..%2fserver.py",
        "/%2e%2e/page_answer.py",
        "/bundle/NOTICES.txt",
        "//etc/passwd",
        "/./server.py",
        "/dashboard.js/",
        "/dashboard.js%00",
        "/dashboard.js.map",
        "/..\\server.py",
        "/NOTICES.txt",
        "/api",
        "/C:/Windows/win.ini",
        "/%ff",
        "/\u00fc",
    ],
)
def test_nothing_else_lies_here(port: int, path: str) -> None:
    quoted = path.encode("utf-8").decode("latin-1")
    got = told(port, f"GET {quoted} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode("latin-1"))
    assert got.startswith(b"HTTP/1.0 404 ") or b"data-door" in got  # a folder of that name shows the page
    assert b"import" not in got
    assert b"root:" not in got


@pytest.mark.parametrize("path", ["/api/", "/api/..", "/api/../header", "/api/__class__", "/api/header/", "/api/%00"])
def test_questions_that_there_are_not_are_told_so(port: int, path: str) -> None:
    got = told(port, f"GET {path} HTTP/1.0\r\nHost: localhost\r\nX-DeepScope-Token: {TOKEN}\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.0 404 ") or b"data-door" in got


@pytest.mark.parametrize(
    "query",
    [
        "step=x",
        "step=1.5",
        "rank=",
        "nope=1",
        "__proto__=1",
        "run=gone",
        "phase=nope",
        "step=99999999999999999999999",
        "stage=%00",
        "x" * 20_000 + "=1",
        "&".join(["a=1"] * 60),
    ],
)
def test_words_that_a_question_has_not_are_an_error_of_the_asker(port: int, query: str) -> None:
    got = asked(port, f"/api/header?{query}", OK)
    assert got.status == 400
    assert 5 < len(got.error) < 2100


BROKEN = [
    b"",
    b"\r\n",
    b"\x00\xff\xfe\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9\r\n\r\n",
    b"GET / HTTP/x.y\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.0\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    b"GET / HTTP/1.0\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    b"GET http://evil.example/ HTTP/1.0\r\nHost: localhost\r\n\r\n",
    b"POST /api/header HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx",
    b"GET /api/header HTTP/1.0\r\nHost: localhost\r\nX-DeepScope-Token: \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_a_broken_request_ends_nothing_and_prints_nothing(
    port: int, number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    got = told(port, BROKEN[number])
    assert b"HTTP/1.1 5" not in got
    assert b"HTTP/1.0 5" not in got
    assert is_alive(port)
    assert capfd.readouterr() == ("", "")


def test_a_client_that_goes_away_prints_nothing(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(20):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset, no farewell
        connection.sendall(
            f"GET /api/overview HTTP/1.0\r\nHost: localhost\r\nX-DeepScope-Token: {TOKEN}\r\n\r\n".encode()
        )
        connection.close()
    assert is_alive(port)
    assert capfd.readouterr() == ("", "")


def test_large_answers_are_packed_for_those_who_can_unpack(port: int) -> None:
    plain = asked(port, "/api/overview", OK)
    packed = asked(port, "/api/overview", {**OK, "Accept-Encoding": "gzip, br"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["Content-Length"] == str(len(packed.body))
    assert "Content-Encoding" not in asked(port, "/api/runs", {**OK, "Accept-Encoding": "gzip"}).headers


def test_many_are_answered_at_once(port: int) -> None:
    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(lambda _: asked(port, "/api/overview", OK).status, range(200)))
    assert found == [200] * 200


def test_those_who_say_nothing_hold_up_nobody_else(port: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(module.MOST_AT_ONCE - 4)]
    try:
        for one in silent:
            one.sendall(b"GET / HT")
        assert is_alive(port)
    finally:
        for one in silent:
            one.close()


def test_who_says_nothing_for_long_loses_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.2)
    monkeypatch.setattr(module, "MOST_AT_ONCE", 2)
    for port in running():
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(6)]
        assert is_alive(port)
        assert [one.recv(1) for one in silent] == [b""] * 6
        for one in silent:
            one.close()


def test_a_folder_that_a_proxy_puts_in_front_changes_nothing(port: int) -> None:
    index = asset("index.html").decode()
    assert 'href="dashboard.css"' in index
    assert 'src="dashboard.js"' in index
    assert asked(port, "/user/ada/proxy/7801/").body == asset("index.html")
    assert asked(port, "/user/ada/proxy/7801/dashboard.js").status == 200
    assert asked(port, "/user/ada/proxy/7801/api/header", OK).status == 200
    assert asked(port, "/user/ada/proxy/7801/api/header").status == 401


def test_without_names_any_name_is_answered_and_the_token_still_counts() -> None:
    for port in running(hosts=()):
        assert asked(port, "/api/header", {**OK, "Host": "gpu-box:7000"}).status == 200
        assert asked(port, "/api/header", {"Host": "gpu-box:7000"}).status == 401


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 on this machine")
def test_it_listens_on_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    for port in running("::1"):
        assert asked(port, "/api/header", OK, host="::1").status == 200


def test_ctrl_c_ends_it_while_it_hands_a_request_to_a_thread_that_is_done_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        thread.join()
        signal.raise_signal(signal.SIGINT)

    server = serve(Pages(Application(Library(())), token=TOKEN, hosts=HOSTS), "127.0.0.1", 0)
    with server, socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()


def test_a_port_is_free_again_at_once() -> None:
    for port in running():
        assert is_alive(port)
    server = serve(Pages(Application(Library(()))), "127.0.0.1", port)
    server.server_close()


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (NotYetError(3, 10), 202, ""),
        (NoTraceError("nothing here"), 404, "nothing here"),
        (OptionError("step", 9, "no such step"), 400, "step=9: no such step"),
        (TruncatedTraceError("ends early", 3), 422, "read the 3 events before it with deepscope view --partial"),
        (TraceError("bad \x1b[2J"), 422, "bad \\x1b[2J"),
        (MemoryError(), 422, "not enough memory"),
        (KeyError("x"), 500, "KeyError"),
        (RecursionError("deep"), 500, "deep"),
    ],
)
def test_each_failure_has_its_status_and_the_next_question_is_answered(
    port: int, error: Exception, status: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(library: Library, question: Choice) -> Choice:
        raise error

    monkeypatch.setitem(QUESTIONS, "fails", fails)
    from deepscope.dashboard import application

    monkeypatch.setattr(application, "question_type", lambda _: Choice)
    got = asked(port, "/api/fails", OK)
    assert got.status == status
    if status == 202:
        assert json.loads(got.body) == {"progress": {"done": 3, "total": 10}}
    else:
        assert says in got.error
    monkeypatch.undo()
    assert is_alive(port)


def test_nothing_is_done_while_nobody_asks() -> None:
    application = Application(OneProfile(built_profiles.training()))
    server = serve(Pages(application, token=TOKEN, hosts=HOSTS), "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5})
    thread.start()
    try:
        assert is_alive(server.server_port)
        before = time.process_time()
        thread.join(2)
        assert time.process_time() - before < 0.05
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def connected(port: int, sent: bytes) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), timeout=10)
    one.sendall(sent)
    return one


def test_connections_that_drip_shut_nobody_out(port: int) -> None:
    dripping = [connected(port, b"GET /api/header HTTP/1.1\r\nHost: loc") for _ in range(module.MOST_AT_ONCE + 6)]
    done = threading.Event()

    def drip() -> None:
        while not done.wait(0.1):
            for one in dripping:
                with suppress(OSError):  # it is let no longer
                    one.sendall(b"a")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert [asked(port, "/api/header", OK).status for _ in range(4)] == [200] * 4
    finally:
        done.set()
        thread.join()
        ended = sum(map(is_ended, dripping))
        for one in dripping:
            one.close()
    assert ended >= 6


def is_ended(one: socket.socket) -> bool:
    """Whether the server has closed a connection to which it had nothing to say."""
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_request_that_takes_too_long_is_ended(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASKING_SECONDS", 0)
    with connected(port, b"GET / HTTP/1.1\r\nHo") as slow:
        assert slow.recv(4096) == b""
