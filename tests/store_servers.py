"""Real servers of remote stores, each a process of its own on the loopback; and runs that are put into them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

import deepscope
from deepscope.errors import NoTraceError
from deepscope.records import Profile
from deepscope.store.ranks import read_ranks
from deepscope.trace.kineto.remote import is_url
from random_traces import random_trace

__all__ = [
    "RANKS",
    "free_port",
    "is_read_anew",
    "reads_as_local",
    "report_alone",
    "running",
    "skip_without",
    "without_paths",
    "write_run",
]

RANKS = 6


def write_run(folder: Path, ranks: int = RANKS) -> Path:
    """Traces of the ranks of one run."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        builder = random_trace(rank % 4)
        builder.metadata["distributedInfo"] = {"rank": rank, "world_size": ranks}
        builder.write(folder / f"ada_{rank}.rank{rank}.{1767319445000000000 + rank}.pt.trace.json.gz")
    return folder


def skip_without(*packages: str) -> None:
    """Skips a module of tests where a package is not installed."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install {package}", allow_module_level=True)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready when its port answers; ended with the context."""
    with log.open("ab") as written:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=written, stderr=written)
    try:
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise AssertionError(log.read_text())
            time.sleep(0.1)
        else:
            raise AssertionError(log.read_text())
        yield process
    finally:
        process.kill()
        process.wait()


def reads_as_local(url: str, folder: Path) -> None:
    """The run at a URL is the run in the folder: found, merged and read rank by rank; single ranks and traces too."""
    there, here = deepscope.load_profile(url, cache=False), deepscope.load_profile(folder, cache=False)
    assert there.trace.ranks == list(range(RANKS))
    assert all(is_url(path) for path in there.trace.paths)
    (_, second, *_) = there.trace.paths
    assert without_paths(there) == without_paths(here)
    ranks = read_ranks(url, cache=False)
    assert ranks.failures == []
    local = read_ranks(folder, cache=False)
    for one in (*ranks.summaries, *local.summaries):
        one.path = ""
    assert ranks == local
    assert without_paths(deepscope.load_profile(url, rank=2, cache=False)) == without_paths(
        deepscope.load_profile(folder, rank=2, cache=False)
    )
    single = deepscope.load_profile(second, cache=False)
    assert single.trace.ranks == [1]
    with pytest.raises(NoTraceError):
        deepscope.load_profile(url.rstrip("/") + "/nothing", cache=False)


def is_read_anew(url: str, folder: Path, put: Callable[[], object]) -> None:
    """A file that was written again is read again; one that is cut is the failure of its rank."""
    first = deepscope.load_profile(url)
    broken = sorted(folder.iterdir())[4]
    broken.write_bytes(broken.read_bytes()[:-300])
    put()
    again = deepscope.load_profile(url)
    assert (first.trace.ranks, again.trace.ranks) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5])
    assert [one.rank for one in read_ranks(url).failures] == [4]


def without_paths(profile: Profile) -> Profile:
    """A profile but for where it was read."""
    profile.trace.path, profile.trace.paths = "", []
    return profile


def report_alone(url: str, place: Path, **environment: str) -> set[str]:
    """Runs `deepscope report` in an empty folder; what it has written anywhere there, its caches in `cache` apart."""
    for name in ("work", "home", "tmp", "cache"):
        (place / name).mkdir(parents=True)
    own = {
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "tmp"),
        "DEEPSCOPE_CACHE_DIR": str(place / "cache"),
        "XDG_CACHE_HOME": str(place / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-m", "deepscope", "report", url],
        cwd=place / "work",
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
    assert f"ranks 0-{RANKS - 1}" in run.stdout
    assert len(list((place / "cache" / "kept").iterdir())) == 2 * RANKS
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} - {
        str(path.relative_to(place)) for path in (place / "cache" / "kept").iterdir()
    }
