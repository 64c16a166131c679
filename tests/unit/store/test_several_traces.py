"""A map over the traces of several ranks: what fails of one is told, what is kept is not read again."""

import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import fsspec
import msgspec
import pytest

from deepscope import processes
from deepscope.errors import NotATraceError, NoTraceError, OptionError, TraceError, TruncatedTraceError
from deepscope.ranks.rank_summary import summary_of
from deepscope.records import WHOLE, Profile
from deepscope.store import load_profile, runs, several_traces, single_trace, trace_identity
from deepscope.store.cache import Kind, cache_folder
from deepscope.store.files import TraceFile
from deepscope.store.ranks import read_ranks
from deepscope.store.selection import select
from deepscope.store.several_traces import read_traces
from deepscope.store.single_trace import ReadRequest, read_profile
from random_traces import random_trace
from trace_builder import TraceBuilder

RANKS = 4


def requests_of(files: Sequence[TraceFile], kind: Kind = "profile", *, cache: bool = True) -> list[ReadRequest]:
    return [ReadRequest(file, kind, WHOLE, partial=False, cache=cache) for file in files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_ranks(tmp_path / "run", RANKS)


def write_ranks(folder: Path, count: int) -> Path:
    folder.mkdir()
    for rank in range(count):
        builder = random_trace(rank % 4)
        builder.metadata["distributedInfo"] = {"rank": rank, "world_size": count}
        builder.write(folder / f"ada_{rank}.rank{rank}.{1767319445000000000 + rank}.pt.trace.json.gz")
    return folder


@pytest.fixture(params=["here", "in processes"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "in processes":
        monkeypatch.setattr(several_traces, "WORTH_BYTES", 1)
        monkeypatch.setattr(several_traces, "cores", lambda: 2)
    return str(request.param)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the traces that this process reads."""
    paths: list[str] = []
    real = single_trace.read_profile

    def counted(file, *args, **options):
        paths.append(file.path)
        return real(file, *args, **options)

    monkeypatch.setattr(single_trace, "read_profile", counted)
    return paths


def break_rank(folder: Path, rank: int, how: str) -> Path:
    path = next(folder.glob(f"*.rank{rank}.*"))
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:-400])
    elif how == "corrupt":
        whole = path.read_bytes()
        path.write_bytes(whole[:200] + bytes(300) + whole[500:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no gzip":
        path.write_bytes(b"\x1f\x8bnot a gzip stream at all" * 20)
    elif how == "a link to nothing":
        path.unlink()
        path.symlink_to(folder / "nothing")
    else:
        path.write_text('{"traceEvents": 3}')
    return path


class Whole(NamedTuple):
    """What `folder` says where nothing is broken."""

    warnings: list[str]
    device_ns: list[int]
    """Of each rank."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = write_ranks(tmp_path_factory.mktemp("whole") / "run", RANKS)
    alone = [load_profile(folder, rank=rank, cache=False) for rank in range(RANKS)]
    return Whole(load_profile(folder, cache=False).trace.warnings, [one.totals.device_ns for one in alone])


@pytest.mark.parametrize(
    ("place", "how"),
    [
        *(("here", how) for how in ("truncated", "corrupt", "empty", "no gzip", "no trace")),
        *(("in processes", how) for how in ("truncated", "no trace")),  # an error of each class comes from there
    ],
    indirect=["place"],
)
def test_a_rank_that_cannot_be_read_is_named_and_the_rest_goes_on(
    whole: Whole, folder: Path, place: str, how: str
) -> None:
    path = break_rank(folder, 2, how)
    profile = load_profile(folder, cache=False)
    assert profile.trace.ranks == [0, 1, 3]
    (warning,) = [one for one in profile.trace.warnings if one not in whole.warnings]
    assert warning.startswith(f"rank 2 is left out: {path}: ")
    assert profile.totals.device_ns == sum(whole.device_ns[rank] for rank in (0, 1, 3))
    found = read_ranks(folder, cache=False)
    assert [one.rank for one in found.summaries] == [0, 1, 3]
    ((failed),) = found.failures
    assert (failed.rank, failed.path) == (2, str(path))
    assert warning.endswith(failed.message)
    with pytest.raises(TraceError):
        load_profile(path, cache=False)


def test_a_rank_that_vanishes_or_may_not_be_read_is_named(folder: Path, place: str) -> None:
    files = select(str(folder)).files
    Path(files[1].path).unlink()
    bad = TraceFile(str(folder), 10, 0)  # a folder in the place of a file
    read = read_traces(requests_of([*files, bad], cache=False))
    assert [type(one) for one in read] == [bytes, NoTraceError, bytes, bytes, NoTraceError]


def test_what_no_trace_should_do_to_the_reader_is_a_matter_of_its_rank(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = single_trace.read_profile

    def fails(file, *args, **options):
        if ".rank1." in file.path:
            raise ZeroDivisionError("nobody thought of this")
        return real(file, *args, **options)

    monkeypatch.setattr(single_trace, "read_profile", fails)
    profile = load_profile(folder, cache=False)
    assert profile.trace.ranks == [0, 2, 3]
    assert any("ZeroDivisionError: nobody thought of this" in one for one in profile.trace.warnings)


def test_a_step_that_some_ranks_have_is_shown_of_these_and_the_others_are_named(tmp_path: Path, place: str) -> None:
    for rank, steps in enumerate(((3, 4), (3,), (3, 4))):  # rank 1 ended early
        builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": 3})
        for step in steps:
            builder.step(step, step * 1000, 900).op("aten::mm", step * 1000 + 10, 100)
        builder.write(tmp_path / f"rank{rank}.json")
    profile = load_profile(tmp_path, step=4, cache=False)
    assert profile.trace.ranks == [0, 2]
    (warning,) = profile.trace.warnings
    assert warning.startswith("rank 1 is left out: ")
    assert warning.endswith("rank1.json: the option `step` (4): no such step; it has 3")
    found = read_ranks(tmp_path, step=4, cache=False)
    assert [one.rank for one in found.summaries] == [0, 2]
    assert [one.rank for one in found.failures] == [1]
    for read in (load_profile, read_ranks):
        with pytest.raises(OptionError, match="no such step; it has 3, 4"):
            read(tmp_path, step=9, cache=False)


def test_if_all_fail_the_first_reason_is_the_error(folder: Path, place: str) -> None:
    for rank in range(RANKS):
        break_rank(folder, rank, "truncated")
    for read in (load_profile, read_ranks):
        with pytest.raises(TruncatedTraceError, match=r"rank0.*partial=True"):
            read(folder, cache=False)
    assert load_profile(folder, cache=False, partial=True).trace.ranks == [0, 1, 2, 3]


def test_of_many_failures_the_rest_is_told_by_number(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "run", 14)
    for rank in range(2, 14):
        break_rank(folder, rank, "truncated")
    warnings = load_profile(folder, cache=False).trace.warnings
    assert sum("is left out: " in one for one in warnings) == 8
    assert "4 more ranks are left out (ranks 10-13); deepscope ranks names each reason" in warnings


def test_what_is_kept_is_not_read_again(folder: Path, reads: list[str]) -> None:
    expected = load_profile(folder, cache=False)
    reads.clear()
    real = single_trace.save_body
    kept: list[str] = []

    def interrupted(kind, file, *args, **options):
        real(kind, file, *args, **options)
        kept.append(file.path)
        if len(kept) == 4:  # two records a trace
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_trace, "save_body", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load_profile(folder)
    first = list(reads)
    assert len(first) == 2
    reads.clear()
    assert load_profile(folder) == expected
    assert len(reads) == 2
    assert not set(reads) & set(first)
    reads.clear()
    assert len(read_ranks(folder).summaries) == RANKS
    assert load_profile(folder) == expected
    assert reads == []


def test_an_interrupt_ends_the_processes_and_what_they_kept_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    monkeypatch.setattr(several_traces, "WORTH_BYTES", 1)
    monkeypatch.setattr(several_traces, "cores", lambda: 2)
    total = len(select(str(folder)).files)
    others = set(processes._RUNNING)  # a recording of another test may still be leaving its profile

    def interrupt(read: int, of: int) -> None:
        if read >= of * 9 // 10:  # at most two are unanswered
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_profile(folder, progress=interrupt)
    assert not set(processes._RUNNING) - others
    assert reads == []
    monkeypatch.setattr(several_traces, "WORTH_BYTES", 1 << 40)
    load_profile(folder)
    assert len(reads) < total


def test_a_summary_is_that_of_the_profile(folder: Path, place: str) -> None:
    files = select(str(folder)).files
    read = read_traces(requests_of(files, "summary", cache=False))
    expected = [
        msgspec.msgpack.encode(summary_of(read_profile(file, WHOLE, partial=False, cache=False))) for file in files
    ]
    assert read == expected


def test_the_summary_of_a_kept_profile_needs_no_trace(folder: Path, reads: list[str]) -> None:
    load_profile(folder)
    for path in (cache_folder() / "kept").glob("*.summary"):
        path.unlink()
    reads.clear()
    assert len(read_ranks(folder).summaries) == RANKS
    assert reads == []


WORKER = """#!/bin/sh
# Ends by a signal where the request is of rank 2 and {condition}.
exec {python} -c '
import os, signal, sys
from deepscope import processes
from deepscope import worker
def read(body, told):
    if b".rank2." in body and {condition}:
        open({mark!r}, "a").write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return worker.work(body, told)
processes.serve(read)
'
"""


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes reading processes die at rank 2, as often as the file `times` says."""
    mark = tmp_path / "died"
    times = tmp_path / "times"
    script = tmp_path / "python"
    condition = f'(len(open("{mark}").read()) if os.path.exists("{mark}") else 0) < int(open("{times}").read())'
    script.write_text(
        WORKER.format(python=sys.executable, condition=condition, mark=str(mark)).replace(
            "'" + str(mark) + "'", '"' + str(mark) + '"'
        )
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(several_traces, "WORTH_BYTES", 1)
    monkeypatch.setattr(several_traces, "cores", lambda: 2)
    return times


@pytest.mark.skipif(sys.platform == "win32", reason="no signals on Windows")
def test_a_process_that_is_killed_is_replaced_and_its_trace_read_again(
    folder: Path, dying: Path, reads: list[str]
) -> None:
    dying.write_text("0")
    expected = load_profile(folder, cache=False)
    dying.write_text("1")
    assert load_profile(folder, cache=False) == expected
    assert reads == []


@pytest.mark.skipif(sys.platform == "win32", reason="no signals on Windows")
def test_a_trace_whose_processes_are_killed_is_told_and_never_read_here(
    folder: Path, dying: Path, reads: list[str]
) -> None:
    dying.write_text("9")
    profile = load_profile(folder, cache=False)
    assert profile.trace.ranks == [0, 1, 3]
    (warning,) = [one for one in profile.trace.warnings if "left out" in one]
    assert f"ended by signal {signal.SIGKILL.value} (not enough memory?)" in warning
    assert reads == []


def test_the_answers_of_each_kind_decode_as_what_they_are(folder: Path) -> None:
    (body, *_) = read_traces(requests_of(select(str(folder)).files))
    assert isinstance(body, bytes)
    assert msgspec.msgpack.decode(body, type=Profile).trace.ranks == [0]


def test_a_file_that_is_no_trace_is_no_rank_unless_it_is_named_and_timed_as_one(folder: Path) -> None:
    (folder / "settings.json").write_text("{}")
    (folder / "ada_9.rank9.1767300000000000000.pt.trace.json.gz").write_bytes(b"")  # five hours before
    (folder / "bob_9.rank9.1767319445000000000.pt.trace.json.gz").write_bytes(b"")
    assert [Path(file.path).name[:11] for file in select(str(folder)).files] == [
        f"ada_{rank}.rank{rank}" for rank in range(4)
    ]
    with pytest.raises(NotATraceError):
        load_profile(folder / "ada_9.rank9.1767300000000000000.pt.trace.json.gz")


def test_a_run_of_more_ranks_than_are_looked_at_first_is_found_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "NAMED_LOOK_LIMIT", 4)
    folder = write_ranks(tmp_path / "run", 23)
    assert select(str(folder)).ranks == tuple(range(23))
    monkeypatch.setattr(runs, "REMOTE_LOOK_LIMIT", 4)
    memory = fsspec.filesystem("memory")
    for path in folder.iterdir():
        memory.pipe(f"/many/{path.name}", path.read_bytes())
    try:
        assert select("memory://many").ranks == tuple(range(23))
    finally:
        memory.rm("/many", recursive=True)


def test_of_one_rank_with_many_windows_the_newest_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "NAMED_LOOK_LIMIT", 4)
    for window in range(12):
        random_trace(0).write(tmp_path / f"ada_1.{1767319445000000000 + window * 10**9}.pt.trace.json.gz")
    looked: list[str] = []
    real = trace_identity.identify
    monkeypatch.setattr(trace_identity, "identify", lambda file: (looked.append(file.name), real(file))[1])
    select(str(tmp_path))
    assert 4 <= len(looked) <= 8


def test_ranks_with_a_folder_each_are_one_run(tmp_path: Path) -> None:
    for rank in range(3):
        builder = random_trace(rank)
        builder.metadata["distributedInfo"] = {"rank": rank, "world_size": 3}
        (tmp_path / f"rank_{rank}").mkdir()
        builder.write(tmp_path / f"rank_{rank}" / "trace.json")
    assert select(str(tmp_path)).ranks == (0, 1, 2)
