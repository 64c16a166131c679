"""Runs on a web server, read from Python's own and from one that knows ranges."""

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

import deepscope
from deepscope.errors import NotATraceError, NoTraceError
from deepscope.store.files import TraceFile, first_bytes
from deepscope.store.ranks import read_ranks
from deepscope.store.selection import select
from random_traces import random_trace
from store_servers import (
    RANKS,
    free_port,
    reads_as_local,
    report_alone,
    running,
    skip_without,
    without_paths,
    write_run,
)

skip_without("aiohttp", "requests")

WITH_RANGES = """
import sys
from aiohttp import web
application = web.Application()
application.router.add_static("/", sys.argv[2], show_index=True)
web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""


@pytest.fixture(params=["http.server", "aiohttp"])
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    folder, port = write_run(tmp_path / "served" / "run"), free_port()
    plain = ["-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder.parent)]
    command = plain if request.param == "http.server" else ["-c", WITH_RANGES, str(port), str(folder.parent)]
    with running([sys.executable, *command], port, tmp_path / "log"):
        yield f"http://127.0.0.1:{port}/run/", folder


def test_a_run_is_read_where_it_lies(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    reads_as_local(url, folder)
    assert report_alone(url, tmp_path / "alone") == set()


def test_a_file_that_changed_is_read_again_and_one_that_goes_is_the_failure_of_its_rank(
    served: tuple[str, Path],
) -> None:
    url, folder = served
    deepscope.load_profile(url)
    path = sorted(folder.iterdir())[2]
    other = random_trace(7)
    other.metadata["distributedInfo"] = {"rank": 2, "world_size": RANKS}
    other.write(path)
    here = deepscope.load_profile(folder, cache=False)
    assert without_paths(deepscope.load_profile(url)) == without_paths(here)
    path.write_bytes(path.read_bytes()[:-300])
    profile = deepscope.load_profile(url)
    assert profile.trace.ranks == [0, 1, 3, 4, 5]
    assert any(one.startswith("rank 2 is left out: http://") for one in profile.trace.warnings)


def test_a_file_larger_than_a_part_is_read_where_parts_are_not_sent_too(served: tuple[str, Path]) -> None:
    url, folder = served
    builder = random_trace(5)
    builder.metadata["notes"] = "x" * (12 << 20)
    path = folder / "large.pt.trace.json"
    builder.write(path)
    there, here = deepscope.load_profile(f"{url}{path.name}", cache=False), deepscope.load_profile(path, cache=False)
    assert without_paths(there) == without_paths(here)


def test_nothing_that_is_kept_or_told_has_the_secrets_of_an_address(served: tuple[str, Path]) -> None:
    url, folder = served
    host = url.removeprefix("http://")
    path = sorted(folder.iterdir())[2]
    path.write_bytes(path.read_bytes()[:-300])
    run, single = f"http://me:s3cret@{host}", f"http://{host}{sorted(folder.iterdir())[1].name}?signature=s3cret"
    profile, ranks = deepscope.load_profile(run), read_ranks(run)
    assert profile.trace.ranks == [one.rank for one in ranks.summaries] == [0, 1, 3, 4, 5]
    assert len(ranks.failures) == 1
    for kept in (profile, ranks, deepscope.load_profile(single)):
        assert b"s3cret" not in msgspec.msgpack.encode(kept)
    with pytest.raises(NoTraceError) as told:
        deepscope.load_profile(f"{run}none.json?signature=s3cret")
    assert str(told.value).startswith(f"http://…@{host}none.json?…: no such file or folder")


def test_links_that_lead_round_come_to_an_end(served: tuple[str, Path]) -> None:
    url, folder = served
    for name in ("above", "beside"):
        (folder / name).symlink_to(folder, target_is_directory=True)
    assert select(url).ranks == tuple(range(RANKS))


def test_a_page_in_the_place_of_a_trace_is_told() -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(NotATraceError, match=r"trace\.json: a web page .* the address of the file itself"):
            deepscope.load_profile(f"http://127.0.0.1:{server.server_port}/blob/trace.json")
        server.shutdown()


def test_of_a_file_that_is_sent_as_a_whole_the_head_alone_is_waited_for() -> None:
    sent: list[int] = []

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 40))
            self.end_headers()
            with suppress(ConnectionError):
                while True:
                    sent.append(self.wfile.write(b" " * (1 << 20)))

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = TraceFile(f"http://127.0.0.1:{server.server_port}/trace.json", 1 << 40, 0)
        assert first_bytes(file, 1 << 16) == b" " * (1 << 16)
        server.shutdown()
    assert sum(sent) < 1 << 28
