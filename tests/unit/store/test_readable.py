"""A folder's newest trace that cannot be read hides none of the others."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from asking import Asking
from deepscope.cli.entry import deepscope
from deepscope.errors import NotATraceError, TraceError, TruncatedTraceError
from deepscope.store import load_profile
from deepscope.store.ranks import read_ranks
from trace_builder import TraceBuilder

BASE_NS = 1_767_319_445_000_000_000

KILLED: dict[str, Callable[[bytes], bytes]] = {
    "empty.gz": lambda _: b"",
    "cut.gz": lambda text: gzip.compress(text, mtime=0)[:-200],
    "begun.gz": lambda text: gzip.compress(text, mtime=0)[:12],
    "empty": lambda _: b"",
    "cut": lambda text: text[: len(text) * 2 // 3],
    "begun": lambda text: text[:40],
}
"""What a killed training leaves, by a name whose ending says whether it is packed."""


def text(run: str = "", rank: int | None = None) -> bytes:
    own = {"format": 1, "run_id": run, "rank": rank, "world_size": 2} if run else None
    builder = TraceBuilder(**({"deepscope": own} if own is not None else {}))
    builder.step(1, 0, 100_000_000)
    for place in range(200):
        builder.op(f"aten::op{place}", place * 1_000, 900)
    return builder.dumps()


def path_of(folder: Path, seconds: int, ending: str = ".gz", worker: str = "ada_1") -> Path:
    return folder / f"{worker}.{BASE_NS + seconds * 10**9}.pt.trace.json{ending}"


def whole(folder: Path, seconds: int, **words: object) -> Path:
    path = path_of(folder, seconds, worker=str(words.pop("worker", "ada_1")))
    path.write_bytes(gzip.compress(text(**words)))  # type: ignore[arg-type]
    return path


def broken(folder: Path, kind: str, seconds: int) -> Path:
    path = path_of(folder, seconds, ".gz" if kind.endswith(".gz") else "")
    path.write_bytes(KILLED[kind](text()))
    return path


@pytest.mark.parametrize("kind", KILLED)
def test_the_newest_whole_trace_is_read_and_the_broken_one_named(tmp_path: Path, kind: str) -> None:
    older, newer = whole(tmp_path, 0), broken(tmp_path, kind, 50)
    newer.with_name(f"{newer.name}.tmp").write_bytes(b"{")
    profile = load_profile(tmp_path)
    assert profile.trace.path == str(older)
    (note,) = [one for one in profile.trace.warnings if newer.name in one]
    with pytest.raises(TraceError) as named:
        load_profile(newer)
    problem = named.value.args[0].partition(f"{newer}: ")[2]
    assert problem
    assert problem in note
    older.unlink()
    with pytest.raises((NotATraceError, TruncatedTraceError), match=newer.name):
        load_profile(tmp_path)


@pytest.mark.parametrize("kind", ["empty.gz", "cut.gz"])
def test_every_command_reads_what_is_whole_and_says_what_it_skips(tmp_path: Path, kind: str) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    whole(runs, 0, run="r1", rank=0, worker="ada.rank0")
    newer = broken(runs, kind, 50)
    for words in (
        ["report", "-n", "1"], ["report", "--format", "csv"], ["report", "--format", "json"],
        ["compare", str(path_of(runs, 0, worker="ada.rank0"))], ["ranks"], ["export", "--format", "json"],
        ["export", "--format", "perfetto"], ["export", "--format", "csv", "-o", str(tmp_path / "csv")],
    ):  # fmt: skip
        told = CliRunner().invoke(deepscope, [words[0], *words[1:], str(runs)])
        assert told.exit_code == 0, (words, told.output)
        assert newer.name in told.output.replace("\n", "").replace(" ", ""), words
        named = CliRunner().invoke(deepscope, [*words, str(newer)])
        assert named.exit_code == 1, words


def test_an_older_window_of_a_run_comes_before_an_older_run(tmp_path: Path) -> None:
    for window in (0, 1):
        for rank in (0, 1):
            path = path_of(tmp_path, 10 * window + rank, worker=f"ada.rank{rank}")
            document = json.loads(text(run="r1", rank=rank))
            document["deepscope"]["window"] = window
            path.write_bytes(gzip.compress(json.dumps(document).encode())[: -200 if window else None])
    profile = load_profile(tmp_path)
    assert profile.trace.ranks == [0, 1]
    assert profile.trace.path.endswith(path_of(tmp_path, 0, worker="ada.rank0").name)
    found = read_ranks(tmp_path)
    assert (len(found.summaries), found.failures, len(found.skipped)) == (2, [], 1)


def test_a_rank_that_cannot_be_read_skips_no_window(tmp_path: Path) -> None:
    whole(tmp_path, 0, run="r0", rank=0, worker="ada.rank0")
    whole(tmp_path, 5000, run="r1", rank=0, worker="ada.rank0")
    cut = path_of(tmp_path, 5001, worker="ada.rank1")
    cut.write_bytes(gzip.compress(text(run="r1", rank=1))[:-200])
    profile = load_profile(tmp_path)
    assert profile.trace.path.endswith(path_of(tmp_path, 5000, worker="ada.rank0").name)
    assert any("rank 1 is left out" in one for one in profile.trace.warnings)


def test_the_pages_show_what_is_whole_and_keep_the_choice_of_runs(tmp_path: Path) -> None:
    whole(tmp_path, 0, run="r1", rank=0, worker="ada.rank0")
    newer = broken(tmp_path, "cut.gz", 900)
    ask = Asking(tmp_path)
    try:
        header = ask("header")
        assert newer.name in header["notes"][0]
        assert ask.status("timeline")[0] == 200
        first, second = ask("runs")["runs"]
        assert (first["problem"] != "", second["problem"], second["id"]) == (True, "", header["run"])
        status, answer = ask.status("header", run=first["id"])
        assert status == 422
        assert newer.name in answer["error"]
        assert not any(newer.name in note for note in ask("header", run=second["id"])["notes"])
        newer.write_bytes(gzip.compress(text()))  # written again, whole
        ask.library.show([str(tmp_path)])
        assert ask("header")["run"] == first["id"]
    finally:
        ask.close()


def test_a_page_that_comes_first_skips_the_broken_trace_too(tmp_path: Path) -> None:
    whole(tmp_path, 0)
    broken(tmp_path, "cut", 50)
    for question in ("timeline", "distributed", "lines"):
        ask = Asking(tmp_path)
        try:
            assert ask.status(question)[0] == 200, question
        finally:
            ask.close()


def test_runs_are_named_by_their_folders_below_what_is_shown(tmp_path: Path) -> None:
    for place, folder in enumerate(("a/exp/version_0", "b/exp/version_0")):
        (tmp_path / folder).mkdir(parents=True)
        whole(tmp_path / folder, place)
    for paths, names in (
        ([tmp_path], {"a/exp/version_0", "b/exp/version_0"}),
        ([tmp_path / "a", tmp_path / "b"], {"a/exp/version_0", "b/exp/version_0"}),
        ([tmp_path / "a"], {"exp/version_0"}),
        ([tmp_path / "a" / "exp" / "version_0"], {""}),
    ):
        ask = Asking(*paths)
        assert {run["name"] for run in ask("runs")["runs"]} == names
        ask.close()


def test_the_pages_are_told_of_new_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepscope.dashboard.library.LOOK_SECONDS", -1.0)
    first = whole(tmp_path, 0)
    ask = Asking(tmp_path)
    try:
        told = [ask("news")]
        told.append(ask("news"))
        whole(tmp_path, 900, worker="ada_2")
        told.append(ask("news"))
        first.unlink()
        told.append(ask("news"))
        marks = [one["runs"] for one in told]
        assert marks[0] == marks[1]
        assert len({*marks}) == 3
        assert len({one["server"] for one in told}) == 1
        assert len(ask("runs")["runs"]) == 1
    finally:
        ask.close()
