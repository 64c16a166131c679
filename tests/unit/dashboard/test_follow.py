"""What an editor tells the dashboard's server of the traces that it shows."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from deepscope.dashboard.application import Application
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice
from deepscope.dashboard.server import Pages, follow, follow_line
from deepscope.errors import NoTraceError
from local_store import local_store
from trace_builder import TraceBuilder

PAGES = Pages(Application(Library(())), hosts={"localhost"})


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Two runs, the newer one second."""
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    trace = TraceBuilder().line("/app/train.py", 3, "main", 0, 1_000).kernel("gemm", 100, 2_000, 400)
    return (
        str(trace.write(tmp_path / "old" / "one.1700000000000000000.pt.trace.json")),
        str(trace.write(tmp_path / "new" / "two.1760000000000000000.pt.trace.json")),
    )


def line(*paths: str, first: str = "") -> bytes:
    return json.dumps({"paths": paths, "first": first}).encode() + b"\n"


def newest_of(library: Library) -> str:
    return library.run(Choice()).newest.file.path


def test_each_line_takes_the_place_of_the_one_before(two: tuple[str, str]) -> None:
    library = Library(())
    with pytest.raises(NoTraceError):
        library.runs()
    follow_line(line(two[0]), library, PAGES)
    assert newest_of(library) == two[0]
    follow_line(line(*two), library, PAGES)
    assert [len(library.runs()), newest_of(library)] == [2, two[1]]


def test_the_run_that_the_editor_shows_is_meant_where_none_is_chosen(two: tuple[str, str]) -> None:
    library = Library(())
    follow_line(line(*two, first=two[0]), library, PAGES)
    assert newest_of(library) == two[0]
    chosen = next(run.id for run in library.runs() if run.newest.file.path == two[1])
    assert library.run(Choice(run=chosen)).newest.file.path == two[1]
    follow_line(line(*two, first="/gone/trace.json"), library, PAGES)
    assert newest_of(library) == two[1]


@local_store
def test_traces_of_a_store_are_shown_like_files(two: tuple[str, str]) -> None:
    library = Library(())
    follow_line(line(*(f"local://{path}" for path in two), first=f"local://{two[0]}"), library, PAGES)
    assert [len(library.runs()), newest_of(library)] == [2, f"local://{two[0]}"]


def test_a_path_that_cannot_be_read_hides_no_other(two: tuple[str, str], tmp_path: Path) -> None:
    library = Library(())
    gone, pipe = str(tmp_path / "gone.json"), str(tmp_path / "pipe.pt.trace.json")
    os.mkfifo(pipe)
    follow_line(line(gone, pipe, two[0], "nothing-of-that-kind://x/y.json"), library, PAGES)
    assert newest_of(library) == two[0]
    follow_line(line(gone, pipe), library, PAGES)
    with pytest.raises(NoTraceError, match=re.escape(gone)):
        library.runs()


@pytest.mark.parametrize("said", [b"", b"\n", b"[]", b'{"paths": 5}', b'{"first": ""}', b"\xff\xfe", b'{"paths": [1]}'])
def test_a_line_of_another_shape_changes_nothing(two: tuple[str, str], said: bytes) -> None:
    library = Library((two[0],))
    follow_line(said, library, PAGES)
    assert newest_of(library) == two[0]


def test_it_is_reached_under_the_name_of_the_editors_proxy_alone(two: tuple[str, str]) -> None:
    library = Library(two)
    pages = Pages(Application(library), hosts={"localhost", "127.0.0.1"})

    def status(host: str) -> str:
        said: list[str] = []
        pages({"REQUEST_METHOD": "GET", "PATH_INFO": "/api/runs", "HTTP_HOST": host}, lambda told, _: said.append(told))
        return said[0][:3]

    assert [status("localhost:1"), status("code.example.com")] == ["200", "403"]
    shown = {"paths": two, "hosts": ["code.example.com"]}
    follow_line(json.dumps(shown).encode(), library, pages)
    assert [status(host) for host in ("localhost:1", "code.example.com", "example.com")] == ["200", "200", "403"]


def test_the_end_of_the_lines_is_told_and_every_line_before(two: tuple[str, str]) -> None:
    library = Library(())
    told: list[str] = []
    lines = io.BytesIO(line(two[0]) + line(two[1]))
    follow(lines, library, PAGES, shown=lambda: told.append(newest_of(library)), ended=lambda: told.append("ended"))
    assert told == [*two, "ended"]


def test_the_server_shows_what_its_input_says_and_ends_with_it(two: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "deepscope", "view", "--no-browser", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            server.stdin.write(line(two[0]).decode())
            server.stdin.flush()
            address, _, token = server.stdout.readline().strip().partition("?token=")

            def runs() -> list[str]:
                with urlopen(Request(f"{address}api/runs", headers={"X-DeepScope-Token": token})) as reply:
                    return [run["folder"] for run in json.load(reply)["runs"]]

            assert [Path(folder).name for folder in runs()] == ["old"]
            server.stdin.write(line(*two).decode())
            server.stdin.flush()
            assert server.stdout.readline() == "shown\n"
            assert [Path(folder).name for folder in runs()] == ["new", "old"]
            server.stdin.close()
            assert server.wait(timeout=60) == 0
        finally:
            server.kill()
