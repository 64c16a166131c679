"""From a path to a Profile; the reader is a stand-in that counts."""

import gc
from pathlib import Path
from typing import Any

import pytest

import built_profiles
from deepscope.analysis import build
from deepscope.analysis.ownership import attribution
from deepscope.errors import OptionError
from deepscope.records import View
from deepscope.store import Profile, load_profile, single_trace
from deepscope.trace import read
from deepscope.trace.format.run_account import EpochAccount, PartAccount, RunAccount, account_path, encoded_account
from trace_builder import TraceBuilder

NAME = "ada_{rank}.{stage}.rank{rank}.176731944500000000{rank}.pt.trace.json"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that were read; each gives the training profile with the rank and stage of its name."""
    seen: list[str] = []

    def read_trace(path: str, *, partial: bool = False, progress: Any = None, **_: Any) -> str:
        seen.append(path)
        if progress is not None:
            progress(1, 2)
        return path

    def profile_of(path: str, view: View) -> Profile:
        profile = built_profiles.training()
        profile.trace.path = path
        profile.trace.ranks = [int(path.split(".rank")[1][0])]
        profile.trace.also_recorded = []
        profile.step = view.step if view.step in {2, 3} else None
        return profile

    monkeypatch.setattr(read, "read_trace", read_trace)
    monkeypatch.setattr(attribution, "attribute", lambda path: path)
    monkeypatch.setattr(build, "profile_of", profile_of)
    monkeypatch.setattr(single_trace, "save_columns", lambda *_, **__: None)
    return seen


def write(folder: Path, rank: int, stage: str = "fit") -> Path:
    path = folder / NAME.format(rank=rank, stage=stage)
    path.write_text('{"traceEvents": []}')
    return path


def test_a_trace_is_read_once_until_it_changes(tmp_path: Path, reads: list[str]) -> None:
    path = write(tmp_path, 0)
    first = load_profile(path)
    assert load_profile(path) == first
    assert reads == [str(path)]
    path.write_text('{"traceEvents": [] }')
    load_profile(path)
    assert len(reads) == 2
    load_profile(path, cache=False)
    assert len(reads) == 3


def test_the_ranks_of_a_folder_are_merged_and_other_stages_named(tmp_path: Path, reads: list[str]) -> None:
    for rank in (0, 1):
        write(tmp_path, rank)
    write(tmp_path, 0, "validate")
    profile = load_profile(tmp_path)
    assert profile.trace.ranks == [0, 1]
    assert profile.trace.also_recorded == ["validate"]
    assert load_profile(tmp_path / NAME.format(rank=0, stage="fit")).trace.ranks == [0]


def test_progress_counts_the_bytes_of_all_files(tmp_path: Path, reads: list[str]) -> None:
    for rank in (0, 1):
        write(tmp_path, rank).write_text(f'{{"deepscope": {{"run_id": "r", "rank": {rank}}}, "traceEvents": []}}')
    seen: list[tuple[int, int]] = []
    profile = load_profile(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert profile.trace.ranks == [0, 1]
    size = 2 * 60
    assert [total for _, total in seen] == [size] * 4
    assert [done for done, _ in seen] == [1, 60, 61, 120]


def test_what_a_file_does_not_hold_is_refused(tmp_path: Path, reads: list[str]) -> None:
    path = write(tmp_path, 0)
    with pytest.raises(OptionError, match="step=7: no such step; there are: 2, 3"):
        load_profile(path, step=7)
    assert load_profile(path, step=3).step == 3
    with pytest.raises(OptionError, match="rank=4"):
        load_profile(path, rank=4)
    with pytest.raises(OptionError, match="stage='test'"):
        load_profile(path, stage="test")


def test_peaks_judge_a_profile_anew_whenever_it_is_loaded(tmp_path: Path, reads: list[str]) -> None:
    path = write(tmp_path, 0)
    words = {"": "compute-bound", "bandwidth=0.1": "memory-bound", "bf16=0.01,bandwidth=0.1": "compute-bound"}
    for peaks, word in words.items():
        profile = load_profile(path, peaks=peaks)
        assert profile.peaks is not None
        assert (profile.operators[0].verdict, profile.peaks.source == "given") == (word, bool(peaks)), peaks
    assert len(reads) == 1


def test_peaks_that_cannot_be_read_are_told_before_the_trace_is_read(tmp_path: Path, reads: list[str]) -> None:
    with pytest.raises(OptionError, match="'fp32=fast' cannot be used; expected a list"):
        load_profile(write(tmp_path, 0), peaks="fp32=fast")
    assert not reads


def test_ranks_are_judged_by_their_sums(tmp_path: Path, reads: list[str]) -> None:
    for rank in (0, 1):
        write(tmp_path, rank)
    merged = load_profile(tmp_path)
    assert len(reads) == 2
    assert merged.lines[0].verdict == "memory-bound"
    assert merged.lines[0].why.rates[0].moved_bytes == 2 * built_profiles.training().lines[0].why.rates[0].moved_bytes


def test_a_view_that_cannot_be_is_told_before_a_trace_is_read(reads, tmp_path):
    path = write(tmp_path, 0)
    with pytest.raises(OptionError, match=r"phase='walk': no such phase; there are: data, forward"):
        load_profile(path, phase="walk")
    with pytest.raises(OptionError, match=r"details='shape': no such table; there are: shapes, stacks"):
        load_profile(path, details=["shape"])
    assert reads == []


def test_each_view_has_a_profile_of_its_own_in_the_cache(reads, tmp_path):
    path = write(tmp_path, 0)
    for view in ({}, {"phase": "forward"}, {"details": ["shapes"]}, {"details": ["stacks", "shapes"]}):
        load_profile(path, **view)
        load_profile(path, **view)
    load_profile(path, details=["shapes", "stacks"])
    assert len(reads) == 4


def test_no_garbage_is_collected_while_a_trace_is_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deepscope.analysis import build

    collects: list[bool] = []

    def profile_of(*given: Any, _build: Any = build.profile_of, **options: Any) -> Profile:
        collects.append(gc.isenabled())
        profile: Profile = _build(*given, **options)
        return profile

    monkeypatch.setattr(build, "profile_of", profile_of)
    load_profile(TraceBuilder().op("aten::add", 1_000, 100).write(tmp_path / "1.pt.trace.json"), cache=False)
    assert collects == [False]
    assert gc.isenabled()


def account(steps_ns: int) -> bytes:
    """That of a run of one step and its start."""
    parts = [PartAccount("steps", steps_ns, 1), PartAccount("start", 5, 0)]
    return encoded_account(RunAccount(steps_ns + 5, parts, steps_ns, [EpochAccount(0, 1, 1, steps_ns, 0)]))


def test_the_account_of_the_run_counts_though_it_comes_after_the_profile_was_kept(
    tmp_path: Path, reads: list[str]
) -> None:
    path = write(tmp_path, 0)
    assert load_profile(path).whole_run is None
    account_path(path).write_bytes(account(7))
    run = load_profile(path).whole_run
    assert run is not None
    assert (run.duration_ns, run.time_ns("steps"), run.first_step_ns) == (12, 7, 7)
    account_path(path).write_bytes(account(7)[:-9])
    assert load_profile(path).whole_run is None
    assert len(reads) == 1


def test_the_accounts_of_ranks_are_summed_if_each_has_one(tmp_path: Path, reads: list[str]) -> None:
    paths = [write(tmp_path, rank) for rank in (0, 1)]
    account_path(paths[0]).write_bytes(account(7))
    assert load_profile(tmp_path).whole_run is None
    account_path(paths[1]).write_bytes(account(11))
    run = load_profile(tmp_path).whole_run
    assert run is not None
    assert (run.duration_ns, run.time_ns("steps"), run.ranks, run.first_step_ns) == (28, 18, 2, 11)
    assert [(part.name, part.times) for part in run.parts] == [("steps", 1), ("start", 0)]
