"""The last line of a command: a next step that leads somewhere."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

import built_profiles
import built_ranks
from built_profiles import MS
from deepscope.capture.process_identity import arguments_digest
from deepscope.cli.next_step import after_comparison, after_line, after_ranks, after_report, after_tries, after_verify
from deepscope.comparison import compare
from deepscope.comparison.noise import Interval, Pair, Sample
from deepscope.records import Profile, ServingPhase
from deepscope.records.findings import Try
from deepscope.report.line_report import find_line
from deepscope.trace.format.header import NO_ARGUMENTS
from deepscope.trials.runs import Command
from recorded_traces import each_trace, profile_of


@pytest.mark.parametrize("path", each_trace())
def test_the_line_that_a_report_leads_to_can_be_opened(path: Path) -> None:
    profile = profile_of(path)
    step = after_report(profile, "line")
    words = shlex.split(step)
    if "--line" in words:
        find_line(profile, words[words.index("--line") + 1])
    else:
        assert not profile.lines or not step or words[:2] == ["deepscope", "try"] or words[0] in {"change", "keep"}


def test_a_report_leads_to_the_line_of_the_largest_saving() -> None:
    profile = built_profiles.training()
    first = profile.findings[0]
    assert after_report(profile, "line").endswith(f" --line {Path(first.file).name}:{first.line}")


def test_without_advice_a_report_leads_to_the_line_of_its_verdict() -> None:
    profile = msgspec.structs.replace(built_profiles.training(), findings=[])
    assert " --line " in after_report(profile, "line")


def test_without_lines_a_report_leads_to_its_kernels_and_those_to_nothing() -> None:
    profile = msgspec.structs.replace(built_profiles.training(), findings=[], lines=[])
    assert after_report(profile, "line").endswith(" --by kernel")
    assert after_report(profile, "kernel") == ""


def test_a_report_of_memory_leads_to_the_snapshot_beside_the_trace(tmp_path: Path) -> None:
    profile = built_profiles.with_memory()
    profile.trace = msgspec.structs.replace(profile.trace, path=str(tmp_path / "a.pt.trace.json.gz"), paths=[])
    before = after_report(profile, "memory")
    (tmp_path / "a.memory.pickle").touch()
    assert before != after_report(profile, "memory") == f"deepscope report {tmp_path / 'a.memory.pickle'}"
    assert after_report(profile, "line") == before


def with_finding(code: str, **trace: object) -> Profile:
    profile = built_profiles.training()
    profile.findings = [msgspec.structs.replace(profile.findings[0], code=code)]
    profile.trace = msgspec.structs.replace(profile.trace, **({"program": "train.py", "world_size": 1} | trace))
    return profile


def step_at_the_finding(profile: Profile) -> str:
    return after_line(profile, profile.findings[0].file, profile.findings[0].line)


def test_what_a_remedy_answers_is_tried() -> None:
    assert step_at_the_finding(with_finding("DS003")) == "deepscope try DS003 -- train.py"
    assert step_at_the_finding(with_finding("DS003", arguments="0123abcd")).endswith("-- train.py ARGUMENTS")
    assert step_at_the_finding(with_finding("DS003", program="package.train")).endswith("-- -m package.train")
    assert step_at_the_finding(with_finding("DS003", program="my train.py")).endswith("-- 'my train.py'")
    assert step_at_the_finding(with_finding("DS003", program="notebook")).endswith("-- PROGRAM")


def test_what_none_answers_is_changed_and_verified() -> None:
    assert "verify --before HEAD -- train.py" in step_at_the_finding(with_finding("DS001", git_commit="c0ffee"))
    assert "verify --before COPY -- train.py" in step_at_the_finding(with_finding("DS001", git_commit=""))


def test_programs_of_several_ranks_are_compared_by_their_recordings() -> None:
    assert "deepscope compare BEFORE AFTER" in step_at_the_finding(with_finding("DS003", world_size=8))


def test_a_program_without_arguments_is_told_from_one_with_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["train.py"])
    assert arguments_digest() == NO_ARGUMENTS
    monkeypatch.setattr("sys.argv", ["train.py", "--epochs", "1"])
    assert arguments_digest() != NO_ARGUMENTS


def test_a_comparison_leads_to_the_line_that_became_slower() -> None:
    profile = built_profiles.training()
    comparison = compare([profile], [profile])
    assert after_comparison(comparison) == ""
    interval = Interval(MS, 3 * MS)

    def slower(one: Sample) -> Sample:
        return dataclasses.replace(one, mean_ns=one.mean_ns + 2 * MS)

    rows = [
        dataclasses.replace(row, pair=Pair(row.pair.before, [slower(one) for one in row.pair.after]), interval=interval)
        for row in comparison.rows
    ]
    step = after_comparison(dataclasses.replace(comparison, rows=rows))
    assert rows[0].place is not None
    assert step.endswith(f"{Path(rows[0].place.path).name}:{rows[0].place.record.line}")


def test_ranks_lead_to_the_one_that_is_late() -> None:
    report = built_ranks.four()
    assert report.stragglers
    assert after_ranks(report, ["runs/exp 1"]) == f"deepscope ranks 'runs/exp 1' --rank {report.stragglers[0].rank}"
    assert after_ranks(msgspec.structs.replace(report, stragglers=[]), ["runs"]) == ""


def tried(verdict: str) -> Try:
    return Try(finding="DS003", remedy="loader-workers: num_workers=3", verdict=verdict)


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (
            ["no gain", "faster"],
            "keep a copy of the program, write it, then: deepscope verify --before COPY -- train.py",
        ),
        (["no gain", "inconclusive"], "try again"),
        (["no gain", "not applicable"], "leave the program as it is"),
    ],
)
def test_what_was_tried_is_written_tried_again_or_left(verdicts: list[str], words: str, tmp_path: Path) -> None:
    command = Command.parsed(["train.py", "--epochs", "1"], working=tmp_path)
    assert after_tries([tried(one) for one in verdicts], command).startswith(words)


def test_what_gains_is_proved_against_the_last_commit_where_there_is_one(tmp_path: Path) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    command = Command.parsed(["train.py", "--epochs", "1"], working=tmp_path)
    words = "write it, then: deepscope verify --before HEAD -- train.py --epochs 1"
    assert after_tries([tried("faster")], command) == words


def test_a_copy_is_not_proposed_in_the_place_of_a_module(tmp_path: Path) -> None:
    command = Command.parsed(["-m", "package.train"], working=tmp_path)
    assert after_tries([tried("faster")], command).endswith("deepscope verify --before HEAD -- -m package.train")


def test_a_change_is_kept_only_if_it_gains() -> None:
    assert after_verify(tried("faster")) == "keep the change"
    assert all(after_verify(tried(one)).startswith("take") for one in ("no gain", "slower", "results differ"))
    assert after_verify(tried("failed")) == ""


def test_a_server_is_changed_and_recorded_again() -> None:
    profile = with_finding("DS003")
    profile.serving = [ServingPhase(phase="decode", steps=1, duration_ns=1, device_ns=0, requests=1, tokens=1)]
    assert step_at_the_finding(profile) == "change the server, record it again, then: deepscope compare BEFORE AFTER"
