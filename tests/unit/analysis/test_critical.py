"""The critical path: what it is made of, the lines on it, and what each would save."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from critical_truth import Truth, run_program
from deepscope.analysis.critical.lines import KINDS
from deepscope.records import CriticalTimes

many = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def times(row: CriticalTimes) -> dict[str, int]:
    """What is not zero of a row, by kind."""
    return {kind: getattr(row, kind) for kind in KINDS if getattr(row, kind)}


@many
@given(st.integers(0, 10**6))
def test_the_path_and_what_each_line_would_save_are_those_of_plain_python(profile_of, seed):
    machine = run_program(seed)
    truth = Truth(machine)
    path = profile_of(machine.builder).critical
    found = {row.line: times(row) for row in path.lines}
    assert found | {None: times(path.no_line)} == {None: {}} | {k: dict(v) for k, v in truth.by_line().items()}
    assert path.evaluated_steps == path.steps == len(machine.steps)
    for row in path.lines:
        assert row.would_shorten_ns == truth.shorter_ns(row.line), row.line
        assert 0 <= row.would_shorten_ns <= row.critical_ns


@many
@given(st.integers(0, 10**6))
def test_a_line_saves_what_the_program_is_faster_without_it(profile_of, seed):
    machine = run_program(seed, synchronised=True)
    path = profile_of(machine.builder).critical
    assert path.critical_ns == machine.steps[-1][1]
    for row in path.lines:
        faster = run_program(seed, synchronised=True, without=row.line)
        assert row.would_shorten_ns == machine.steps[-1][1] - faster.steps[-1][1], row.line
