"""The plan of a session, by runs whose answers are written by hand: no program runs here."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from deepscope.trials import session as sessions
from deepscope.trials.messages import Answer, LoaderFacts, OptimizerFacts, ProgramFacts
from deepscope.trials.remedies import REMEDIES
from deepscope.trials.remedy_search import Candidate, Search, try_each
from deepscope.trials.runs import RunFailedError, TooLateError
from deepscope.trials.session import TrialSession

MS = 1_000_000


@dataclass
class Name:
    name: str = "train.py"


@dataclass
class ScriptedRuns:
    """Answers with a step of `length_ms` less what each remedy gains; each run takes a second of a made-up clock."""

    gains: dict[str, float]
    losses: dict[str, list[float]] = field(default_factory=dict)
    raised: dict[str, Exception] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    noise: Sequence[float] | Noise = (1.0, 1.001, 0.999)
    budget_s: float = 1000.0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    command: Name = field(default_factory=Name)
    has_workers: bool = False

    @property
    def number(self) -> int:
        return len(self.asked)

    @property
    def left_s(self) -> float:
        return self.budget_s - len(self.asked)

    def run(self, *, warmup, steps, seconds=None, changes=(), rounding=0.0, fill=None, longest_s=None):
        names = tuple(change.remedy for change in changes)
        self.asked.append(("noise",) if rounding else names)
        length = 100.0 * self.noise[len(self.asked) % len(self.noise)]
        losses = [1.0, 0.5]
        for name in names:
            if name in self.raised:
                raise self.raised[name]
            length *= self.gains.get(name, 1.0)
            losses = self.losses.get(name, losses)
        total = warmup + (20 if seconds else steps)
        loader = LoaderFacts(
            dataset="D", workers=int("loader-workers" in names), pin_memory=False, persistent_workers=False,
            prefetch_factor=2, is_iterable=False, is_sharded=False, start_method="fork",
        )  # fmt: skip
        adam = OptimizerFacts(
            kind="Adam", device="cpu", parameters=1, takes_fused=True, takes_foreach=True,
            fused="fused-optimizer" in names, foreach=None,
        )  # fmt: skip
        return Answer(
            steps=total,
            marks=[(number, round(number * length * MS)) for number in range(1, total + 1)],
            losses=losses,
            facts=ProgramFacts(cores=4, threads=4, loaders=[loader], optimizers=[adam]),
            applied=list(names),
            refused={name: self.refused[name] for name in names if name in self.refused},
        )


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(sessions.time, "monotonic", iter(range(100_000)).__next__)


def started(runs: ScriptedRuns) -> TrialSession:
    session = TrialSession(runs, lambda _: None, steps=None)
    session.start()
    return session


def tried(runs: ScriptedRuns, *names: str):
    rows = try_each(started(runs), [Candidate(REMEDIES[name], "") for name in names])
    return {row.remedy.partition(":")[0]: row for row in rows}


def test_two_unchanged_runs_come_first_and_then_they_take_turns():
    runs = ScriptedRuns({"fused-optimizer": 0.5})
    row = tried(runs, "fused-optimizer")["fused-optimizer"]
    fused = ("fused-optimizer",)
    assert runs.asked == [(), (), fused, fused, ()]
    assert (row.verdict, row.losses) == ("faster", "identical")
    assert row.speedup == pytest.approx(2.0, rel=0.01)
    assert row.before_ns == pytest.approx(100 * MS, rel=0.01)


def test_what_is_slower_is_settled_by_one_run():
    runs = ScriptedRuns({"foreach-optimizer": 3.0})
    assert tried(runs, "foreach-optimizer")["foreach-optimizer"].verdict == "slower"
    assert runs.asked == [(), (), ("foreach-optimizer",)]


def test_a_noisy_machine_gets_more_rounds_and_then_an_honest_answer():
    runs = ScriptedRuns({"fused-optimizer": 0.9}, noise=(1.0, 1.5, 0.8, 1.2, 0.7))
    row = tried(runs, "fused-optimizer")["fused-optimizer"]
    assert row.verdict == "inconclusive"
    assert "busy" in row.reason
    assert len(runs.asked) > 5


def test_other_losses_are_never_faster():
    runs = ScriptedRuns({"fused-optimizer": 0.1}, losses={"fused-optimizer": [1.0, 0.6]})
    row = tried(runs, "fused-optimizer")["fused-optimizer"]
    assert (row.verdict, row.losses) == ("results differ", "different")
    assert ("noise",) in runs.asked


@pytest.mark.parametrize(
    ("error", "verdict"), [(RunFailedError("boom"), "failed"), (TooLateError("too late"), "inconclusive")]
)
def test_a_run_that_fails_is_a_row_and_the_others_go_on(error, verdict):
    rows = tried(ScriptedRuns({}, raised={"fused-optimizer": error}), "fused-optimizer", "foreach-optimizer")
    assert (rows["fused-optimizer"].verdict, rows["fused-optimizer"].reason) == (verdict, str(error))
    assert rows["foreach-optimizer"].speedup is not None


def test_a_remedy_that_torch_refuses_is_not_applicable_with_torchs_reason():
    rows = tried(ScriptedRuns({}, refused={"fused-optimizer": "torch says no"}), "fused-optimizer")
    assert (rows["fused-optimizer"].verdict, rows["fused-optimizer"].reason) == ("not applicable", "torch says no")


def test_what_does_not_apply_is_never_run():
    runs = ScriptedRuns({})
    assert tried(runs, "prefetch", "cudnn-benchmark")["prefetch"].reason == "the loader has no workers"
    assert runs.asked == [(), ()]


def test_a_used_up_budget_leaves_the_rest_inconclusive():
    rows = tried(ScriptedRuns({}, budget_s=7.0), "fused-optimizer", "foreach-optimizer", "one-thread")
    assert [row.verdict for row in rows.values()].count("inconclusive") >= 1
    assert rows["one-thread"].reason == sessions.USED_UP


def test_a_search_keeps_the_best_tries_the_rest_on_top_and_measures_the_set_as_a_whole():
    runs = ScriptedRuns({"loader-workers": 0.5, "fused-optimizer": 0.8, "prefetch": 0.9, "one-thread": 2.0})
    names = ("one-thread", "loader-workers", "prefetch", "fused-optimizer")
    search = Search(started(runs), [Candidate(REMEDIES[name], "") for name in names])
    rows = search.rows()
    assert search.written == [
        "DataLoader(num_workers=3)", "fused=True in the optimizer", "DataLoader(prefetch_factor=4)",
    ]  # fmt: skip
    assert rows[-1].speedup == pytest.approx(1 / (0.5 * 0.8 * 0.9), rel=0.01)
    assert runs.asked.count(("one-thread",)) == 1  # slower alone: not tried again
    assert ("loader-workers", "prefetch") in runs.asked  # applies only once there are workers
    assert [row.remedy.partition(":")[0] for row in rows[:-1]] == list(names)


def test_a_search_that_finds_nothing_has_no_set():
    search = Search(started(ScriptedRuns({})), [Candidate(REMEDIES["fused-optimizer"], "")])
    assert [row.verdict for row in search.rows()] == ["no gain"]
    assert search.written == []


class Noise:
    """Each run's length is another, by a deviation of a tenth."""

    def __init__(self) -> None:
        self._random = random.Random(7)

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, _: int) -> float:
        return math.exp(self._random.gauss(0, 0.1))


def test_noise_alone_is_called_faster_or_slower_in_hardly_one_session_of_twenty():
    noise = Noise()
    verdicts = [tried(ScriptedRuns({}, noise=noise), "fused-optimizer")["fused-optimizer"].verdict for _ in range(200)]
    assert verdicts.count("faster") + verdicts.count("slower") <= 200 * 0.05


def test_a_gain_well_beyond_the_noise_is_found_in_most_sessions():
    noise = Noise()
    runs = [ScriptedRuns({"fused-optimizer": 0.6}, noise=noise) for _ in range(100)]
    assert sum(tried(one, "fused-optimizer")["fused-optimizer"].verdict == "faster" for one in runs) >= 90
