"""Which traces of a folder are shown."""

import gzip
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import pytest

from deepscope.errors import NotATraceError, NoTraceError, OptionError, TraceError
from deepscope.store import load_profile
from deepscope.store.files import TraceFile, list_files, open_file
from deepscope.store.ranks import read_ranks
from deepscope.store.runs import Recognizer, find_traces
from deepscope.store.selection import newest_folder, select
from deepscope.store.trace_identity import parse_name
from trace_builder import TraceBuilder

BASE_NS = 1_767_319_445_000_000_000


def write(path: Path, *, own: dict[str, Any] | None = None, group: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    trace: dict[str, Any] = {"schemaVersion": 1}
    if own is not None:
        trace["deepscope"] = {"format": 1, **own}
    if group is not None:
        trace["distributedInfo"] = {"backend": "nccl", **group}
    trace["traceEvents"] = []
    text = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def name(worker: str, seconds: int) -> str:
    return f"{worker}.{BASE_NS + seconds * 10**9}.pt.trace.json.gz"


def chosen(folder: Path, **options: Any) -> list[str]:
    return [Path(file.path).relative_to(folder).as_posix() for file in select(str(folder), **options).files]


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("ada_17.fit.rank3.1712195495519689047.pt.trace.json.gz", ("ada_17", "fit", 3)),
        ("my.run.sanity_check.rank0.1712195495519689047.pt.trace.json", ("my.run", "sanity_check", 0)),
        ("worker0.1623143089861.pt.trace.json.gz", ("worker0", "", None)),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", ("rank-*.Jul_15_10_52_41.1074", "", 34)),
        ("profile_trace_rank_0.json.gz", ("profile_trace_rank_*", "", 0)),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.1773709679453551615.pt.trace.json.gz", ("dp0_pp0_tp1_dcp0_ep1_rank*", "", 1)),
        ("1782841132.2905657-TP-3-DECODE.trace.json.gz", ("1782841132.2905657-TP-*", "decode", 3)),
        ("1782841132.29-TP-0-DP-1-EXTEND.trace.json.gz", ("1782841132.29-TP-0-DP-1", "prefill", None)),
        ("mine-DECODE.trace.json.gz", ("mine-DECODE", "", None)),
        ("1782841132.2905657-TP-3.trace.json.gz", ("1782841132.2905657-TP-*", "", 3)),
        ("1782841132.29-TP-0-DP-1-PP-0-EP-0.trace.json.gz", ("1782841132.29-TP-0-DP-1-PP-0-EP-0", "", None)),
        ("fit.json", ("fit", "", None)),
        ("trace.json", ("trace", "", None)),
    ],
)
def test_a_name_is_taken_apart(file: str, parts: tuple[str, str, int | None]) -> None:
    assert parse_name(file) == parts


def test_the_newest_run_is_shown_whatever_the_files_dates(tmp_path: Path) -> None:
    write(tmp_path / "version_0" / name("ada_1", 0))
    new = write(tmp_path / "version_1" / name("ada_2", 50))
    os.utime(new, (1, 1))  # copied from elsewhere: the name has the true time
    assert chosen(tmp_path) == [f"version_1/{name('ada_2', 50)}"]


def test_training_comes_before_the_other_stages_and_they_are_named(tmp_path: Path) -> None:
    for place, stage in enumerate(["sanity_check", "fit", "validate", "test"]):
        write(tmp_path / name(f"ada_1.{stage}.rank0", place), own={"run_id": "r1", "stage": stage, "rank": 0})
    selection = select(str(tmp_path))
    assert selection.stage == "fit"
    assert selection.also_recorded == ("validate", "test", "sanity_check")
    assert chosen(tmp_path, stage="test") == [name("ada_1.test.rank0", 3)]
    with pytest.raises(OptionError, match=r"stage='predict'.*fit, validate, test, sanity_check"):
        select(str(tmp_path), stage="predict")


def test_the_two_files_of_a_profile_by_stage_are_stages_of_one_run(tmp_path: Path) -> None:
    for stage in ("EXTEND", "DECODE"):
        for rank in (0, 1):
            path = tmp_path / f"1782841132.29-TP-{rank}-{stage}.trace.json.gz"
            write(path, group={"rank": rank, "world_size": 2})
    assert len({one.run for one in find_traces(str(tmp_path))}) == 1
    decode = select(str(tmp_path))
    assert (decode.stage, decode.also_recorded, decode.ranks) == ("decode", ("prefill",), (0, 1))
    assert chosen(tmp_path, stage="prefill") == [f"1782841132.29-TP-{rank}-EXTEND.trace.json.gz" for rank in (0, 1)]


def test_a_profile_has_the_stage_that_its_files_name(tmp_path: Path) -> None:
    for stage, name_ in (("EXTEND", "step[EXTEND bs=1 toks=8]"), ("DECODE", "step[DECODE bs=4]")):
        TraceBuilder().annotation(name_, 0, 100).write(tmp_path / f"17.29-TP-0-{stage}.trace.json")
    whole, prefill = load_profile(tmp_path, cache=False), load_profile(tmp_path, stage="prefill", cache=False)
    assert (whole.trace.stage, whole.trace.also_recorded, whole.serving[0].phase) == ("decode", ["prefill"], "decode")
    assert (prefill.trace.stage, prefill.serving[0].phase) == ("prefill", "prefill")
    with pytest.raises(OptionError, match="fit"):
        load_profile(tmp_path / "17.29-TP-0-DECODE.trace.json", stage="fit", cache=False)


def engine(dp: int, tp: int, rank: int, group: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return f"dp{dp}_pp0_tp{tp}_dcp0_ep0_rank{rank}.177370967945355161{dp}.pt.trace.json.gz", group


@pytest.mark.parametrize(
    ("files", "ranks"),
    [
        ([engine(dp, 0, 0, {"rank": 0, "world_size": 1}) for dp in (0, 1)], (0, 1)),
        ([engine(dp, tp, tp, {"rank": tp, "world_size": 2}) for dp in (0, 1) for tp in (0, 1)], (0, 1, 2, 3)),
        (
            [engine(dp, tp, tp, {"rank": 2 * dp + tp, "world_size": 4}) for dp in (0, 1) for tp in (0, 1)],
            (0, 1, 2, 3),
        ),
        (
            [engine(dp, tp, 2 * dp + tp, {"rank": 2 * dp + tp, "world_size": 4}) for dp in (0, 1) for tp in (0, 1)],
            (0, 1, 2, 3),
        ),
    ],
    ids=["an engine a device", "two devices an engine", "one group of all engines", "named by it"],
)
def test_engines_side_by_side_are_ranks_of_one_run(
    tmp_path: Path, files: list[tuple[str, dict[str, Any]]], ranks: tuple[int, ...]
) -> None:
    for name_, group in files:
        write(tmp_path / name_, group=group)
    assert select(str(tmp_path)).ranks == ranks


def test_the_profiles_of_engines_have_the_ranks_of_their_names(tmp_path: Path) -> None:
    for dp in (0, 1):
        builder = TraceBuilder(distributedInfo={"rank": 0, "world_size": 1})
        builder.annotation(f"execute_context_0(0)_generation_{4 + dp}({4 + dp})", 0, 100)
        builder.write(tmp_path / f"dp{dp}_pp0_tp0_dcp0_ep0_rank0.177370967945355161{dp}.pt.trace.json")
    merged = load_profile(tmp_path, cache=False)
    assert (merged.trace.ranks, merged.trace.world_size) == ([0, 1], 2)
    assert [step.requests for step in merged.serving_steps] == [4, 5]
    assert [one.rank for one in read_ranks(tmp_path, cache=False).summaries] == [0, 1]


def test_all_ranks_of_the_newest_window_are_merged(tmp_path: Path) -> None:
    for window in (0, 1):
        for rank in (1, 0):
            write(
                tmp_path / name(f"host{rank}_{7 + rank}.fit.rank{rank}", 100 * window + rank),
                own={"run_id": "r1", "stage": "fit", "window": window, "rank": rank, "world_size": 2},
            )
    both = [name("host0_7.fit.rank0", 100), name("host1_8.fit.rank1", 101)]
    assert chosen(tmp_path) == both
    assert chosen(tmp_path, rank=1) == both[1:]
    with pytest.raises(OptionError, match=r"rank=5.*there are: 0, 1"):
        select(str(tmp_path), rank=5)


def test_runs_in_one_folder_are_told_apart_by_their_id(tmp_path: Path) -> None:
    for run, seconds in (("old", 0), ("new", 5)):
        for rank in (0, 1):
            own = {"run_id": run, "stage": "fit", "window": 0, "rank": rank, "world_size": 2}
            write(tmp_path / name(f"ada_{run}.fit.rank{rank}", seconds), own=own)
    assert chosen(tmp_path) == [name("ada_new.fit.rank0", 5), name("ada_new.fit.rank1", 5)]


def test_ranks_that_torch_named_by_process_are_found_by_their_group(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / name(f"ip-10-0-0-{rank}_{900 + rank}", rank), group={"rank": rank, "world_size": 3})
    write(tmp_path / name("ip-10-0-0-9_800", -7200), group={"rank": 0, "world_size": 3})  # of a run two hours ago
    write(tmp_path / name("other", 1))
    assert chosen(tmp_path) == [name(f"ip-10-0-0-{rank}_{900 + rank}", rank) for rank in range(3)]


def test_a_trace_of_any_name_is_found_beside_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"lr": 1}')
    bare = tmp_path / "trace.json"
    bare.write_text('[{"ph": "X", "name": "a", "ts": "1.5", "dur": 1}]')
    os.utime(bare, (9e9, 9e9))
    assert chosen(tmp_path) == ["trace.json"]
    write(tmp_path / name("ada_1", 0))
    assert chosen(tmp_path) == ["trace.json"]


@pytest.mark.parametrize("file", ["profile.gz", "rank0.trace", "step.trace.gz", "TRACE.json.gz"])
def test_a_trace_is_found_without_json_in_its_name(tmp_path: Path, file: str) -> None:
    text = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}'
    (tmp_path / file).write_bytes(gzip.compress(text) if file.endswith(".gz") else text)
    (tmp_path / "images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(range(256)) * 64))
    assert chosen(tmp_path) == [file]


def test_an_archive_is_told_how_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "trace.json", '{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
        )
    with pytest.raises(NotATraceError, match=r"is a zip archive; .* zip://NAME::"):
        load_profile(path, cache=False)
    assert load_profile(f"zip://trace.json::{path}", cache=False).trace is not None


NO_TRACES = {
    "package.json": {"name": "x", "deepscope": {"traceEvents": [], "run_id": "r"}, "version": "1"},
    "notebook.json": {"cells": [{"source": ['{"traceEvents": [{"ph": "X"}]}', '"traceEvents": [']}], "nbformat": 4},
    "manifest.json": {"schemaVersion": 2, "layers": [{"digest": "x" * 64}] * 2000},
    "events.json": [{"ts": 1, "value": 2}, {"ts": 2, "value": 3}],
    "phases.json": [{"ph": 7.4, "pid": 1}],
    "numbers.json": [[1, 2], [3, 4]],
    "words.json": ["ph", "ts"],
    "text.json": "traceEvents",
    "counts.json": {"traceEvents": 7},
    "large.json": {"rows": [{"deviceProperties": index, "traceEvents": []} for index in range(9_000)]},
}


@pytest.mark.parametrize("file", NO_TRACES)
def test_ordinary_json_is_no_trace_whatever_words_it_holds(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(json.dumps(NO_TRACES[file], indent=1))
    with pytest.raises(NoTraceError, match="1 files looked into, none of them a trace"):
        select(str(tmp_path))


TRACES = {
    "bom.json": "\ufeff" + '{"traceEvents": []}',
    "late.json": json.dumps({"a": [1, {"b": "]}"}], "c": 'quoted \\" {', "traceEvents": []}),
    "pid first.json": '[{"pid": 1, "args": {"name": "python"}, "ph": "M", "name": "process_name"}, {}]',
    "large header.json": json.dumps({"schemaVersion": 1, "deepscope": {"files": ["x" * 99_000]}, "traceEvents": []}),
}


@pytest.mark.parametrize("file", TRACES)
def test_a_trace_is_known_by_its_own_keys(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(TRACES[file], encoding="utf-8")
    assert chosen(tmp_path) == [file]


def test_a_text_that_the_head_cuts_off_is_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "quotes.json"
    file.write_text('{"a": "' + '\\"' * 200_000 + '"}')
    with pytest.raises(NoTraceError):
        select(str(tmp_path))


def torch_trace(path: Path, events_ns: int, base_ns: int = 0) -> Path:
    """As torch writes it: times in microseconds, since the epoch or since a base that stands in the header."""
    base = {"baseTimeNanoseconds": base_ns} if base_ns else {}
    event = {"ph": "X", "name": "a", "ts": (events_ns - base_ns) / 1000, "dur": 1}
    path.write_text(json.dumps({"schemaVersion": 1, **base, "traceEvents": [event]}))
    return path


def test_a_copy_of_an_old_trace_is_not_the_newest_run(tmp_path: Path) -> None:
    second = 10**9
    new = torch_trace(tmp_path / "mine.json", BASE_NS, base_ns=BASE_NS - 900 * second)
    torch_trace(tmp_path / "of 2021.json", BASE_NS - 150_000_000 * second)
    write(tmp_path / "last year.pt.trace.json", own={"recorded_at": "2025-03-04T05:06:07+02:00"})
    write(tmp_path / name("named", -100))
    os.utime(new, (1, 1))
    assert chosen(tmp_path) == ["mine.json"]
    assert [one.file.name for one in find_traces(str(tmp_path))] == [
        "mine.json",
        name("named", -100),
        "last year.pt.trace.json",
        "of 2021.json",
    ]


def test_environments_packages_and_hidden_folders_are_not_looked_through(tmp_path: Path) -> None:
    for folder in ("node_modules/x", "lib/site-packages", ".cache", "my env/lib"):
        write(tmp_path / folder / "a.pt.trace.json")
    (tmp_path / "my env" / "pyvenv.cfg").touch()
    with pytest.raises(NoTraceError):
        select(str(tmp_path))
    assert chosen(tmp_path / ".cache") == ["a.pt.trace.json"]


def test_each_version_of_a_file_is_opened_once(tmp_path: Path) -> None:
    trace, other = write(tmp_path / "a.json"), tmp_path / "config.json"
    other.write_text("{}")
    recognizer = Recognizer()
    assert [one.file.path for one in recognizer.traces(list_files(str(tmp_path)))] == [str(trace)]
    # What is no longer readable under the same size and date is known all the same.
    for path in (trace, other):
        date = path.stat().st_mtime_ns
        path.write_bytes(b" " * path.stat().st_size)
        os.utime(path, ns=(date, date))
    assert [one.file.path for one in recognizer.traces(list_files(str(tmp_path)))] == [str(trace)]
    write(other, own={"run_id": "r"})
    assert {one.file.path for one in recognizer.traces(list_files(str(tmp_path)))} == {str(trace), str(other)}


def test_a_folder_without_a_trace_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoTraceError, match="no trace in this folder; traces are"):
        select(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(NoTraceError, match="1 files looked into, none of them a trace"):
        select(str(tmp_path))


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    write(real / name("ada_1", 0))
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "latest").symlink_to(real)
    (real / "again").symlink_to(logs)
    (logs / name("gone", 9)).symlink_to(tmp_path / "nowhere")
    assert chosen(logs) == [f"latest/{name('ada_1', 0)}"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoTraceError, match="no such file or folder"):
        select(str(tmp_path / "nope"))
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(NotATraceError, match="a device or a pipe"):
        select(str(tmp_path / "pipe.json"))
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(TraceError, match="cannot be read"):
        select(str(loop))
    with pytest.raises(TraceError, match="cannot be read"):
        select("a\0b")


def test_the_folder_with_the_newest_trace_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = ("deepscope_logs", "lightning_logs", "runs")
    with pytest.raises(NoTraceError, match=r"no trace in \./deepscope_logs, \./lightning_logs, \./runs"):
        newest_folder(folders)
    write(tmp_path / "runs" / "a" / name("ada_1", 5))
    write(tmp_path / "deepscope_logs" / name("ada_1", 2))
    (tmp_path / "lightning_logs").mkdir()
    assert newest_folder(folders) == "runs"


def test_the_newest_iteration_of_torchtitan_is_shown_with_its_ranks(tmp_path: Path) -> None:
    for iteration in (10, 20, 100):
        for rank in (0, 1):
            group = {"rank": rank, "world_size": 2}
            path = write(tmp_path / f"profile_traces/iteration_{iteration}/rank{rank}_trace.json", group=group)
            os.utime(path, (1_000 + iteration, 1_000 + iteration))
    newest = [f"profile_traces/iteration_100/rank{rank}_trace.json" for rank in (0, 1)]
    assert chosen(tmp_path) == newest


def test_traces_in_a_remote_store_are_found_like_local_ones() -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for seconds in (0, 5):
        store.pipe(f"/logs/{name('ada_1', seconds)}", b'{"schemaVersion": 1, "traceEvents": []}')
    try:
        selection = select("memory://logs")
        assert [file.path for file in selection.files] == [f"memory://logs/{name('ada_1', 5)}"]
        assert select(selection.files[0].path).files[0].size_bytes == 39
        with pytest.raises(NoTraceError, match="no such file"):
            select("memory://nothing")
    finally:
        store.rm("/logs", recursive=True)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("memory://logs", "memory://logs/deep/t.json"),
        ("memory:///logs/", "memory:///logs/deep/t.json"),
        ("zip://logs::{archive}", "zip://logs/deep/t.json::{archive}"),
        ("zip::{archive}", "zip://logs/deep/t.json::{archive}"),
        ("simplecache::memory://logs", "simplecache::memory://logs/deep/t.json"),
        ("simplecache::zip://logs::{archive}", "simplecache::zip://logs/deep/t.json::{archive}"),
        ("local://{folder}", "local://{folder}/logs/deep/t.json"),
        ("hosts://ada@store:99", "hosts://ada@store:99/logs/deep/t.json"),
        ("hosts://ada@store:99/logs/", "hosts://ada@store:99/logs/deep/t.json"),
        ("hosts:///logs", "hosts:///logs/deep/t.json"),
    ],
)
def test_a_files_url_is_its_folders_and_opens_it(url: str, found: str, tmp_path: Path) -> None:
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Hosts(MemoryFileSystem):
        """As WebHDFS, FTP and SSH have it: the host stands in the URL alone."""

        protocol = "hosts"
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            place = path.split("://", 1)[-1]
            return str(super()._strip_protocol(place if "://" not in path else "/" + place.partition("/")[2]))

    fsspec.register_implementation("hosts", Hosts, clobber=True)
    store = fsspec.filesystem("memory")
    content = b'{"schemaVersion": 1, "traceEvents": []}'
    for one in (store, Hosts()):
        one.pipe("/logs/deep/t.json", content)
    local = tmp_path / "folder" / "logs" / "deep" / "t.json"
    local.parent.mkdir(parents=True)
    local.write_bytes(content)
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        archive.writestr("logs/deep/t.json", content)
    places = {"archive": str(tmp_path / "runs.zip"), "folder": str(tmp_path / "folder")}
    try:
        (file,) = list_files(url.format(**places))
        assert file.path == found.format(**places)
        with open_file(file) as stream:
            assert stream.read() == content
    finally:
        store.rm("/logs", recursive=True)


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr("deepscope.store.files.os.scandir", refuse)
        with pytest.raises(TraceError, match="cannot be read: Permission denied"):
            select(str(tmp_path))
    monkeypatch.setattr("deepscope.store.files.os.stat", refuse)
    with pytest.raises(TraceError, match="cannot be read: Permission denied"):
        select(str(tmp_path / "trace.json"))


def test_traces_in_an_archive_are_found_and_opened(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr(f"runs/{name('ada_1', 0)}", '{"schemaVersion": 1, "traceEvents": []}')
    selection = select(f"zip://runs::{tmp_path}/logs.zip")
    (file,) = selection.files
    assert file.path == f"zip://runs/{name('ada_1', 0)}::{tmp_path}/logs.zip"
    assert select(file.path).files[0].size_bytes == 39


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_the_ranks_in_an_archive_are_one_run(tmp_path: Path, form: str) -> None:
    for rank in range(3):
        write(tmp_path / "runs" / name(f"ip-10-0-0-{rank}_{900 + rank}", rank), group={"rank": rank, "world_size": 3})
        write(tmp_path / "names" / f"rank{rank}.json")
    for folder in ("runs", "names"):
        shutil.make_archive(str(tmp_path / folder), form, tmp_path, folder)
        assert select(f"{form}://{folder}::{tmp_path}/{folder}.{form}").ranks == (0, 1, 2)


@pytest.mark.parametrize(
    ("path", "folder", "file"),
    [
        ("/a/b.json", "/a/", "b.json"),
        ("s3://a/b/c.json", "s3://a/b/", "c.json"),
        ("https://h/a/b.json.gz?signature=c/d", "https://h/a/", "b.json.gz"),
        ("zip://a/b.json::/c/d.zip", "zip://a/", "b.json"),
        ("simplecache::s3://a/b.json", "s3://a/", "b.json"),
    ],
)
def test_a_files_name_is_its_own(path: str, folder: str, file: str) -> None:
    found = TraceFile(path, 1, 1)
    assert (found.folder, found.name) == (folder, file)
