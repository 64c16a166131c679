from pathlib import Path
from types import SimpleNamespace

import pytest

import built_profiles
from deepscope.lightning.runs import summarize
from deepscope.lightning.stages import Stage


def windows(*profiles: object) -> SimpleNamespace:
    """A stage with one recorder for each profile, None standing for one that wrote nothing."""
    recorders = [
        SimpleNamespace(profile=profile, traces=[] if profile is None else [Path("trace")]) for profile in profiles
    ]
    return SimpleNamespace(recorders=recorders)


def test_the_lines_are_those_of_the_report() -> None:
    text = summarize({Stage.FIT: windows(built_profiles.training())}, main="fit", rows=2, sort=None)
    assert "model.py:42" in text
    assert "deepscope report" in text.splitlines()[-1]


def test_rows_are_limited() -> None:
    few, all_rows = (
        summarize({Stage.FIT: windows(built_profiles.training())}, main="fit", rows=rows, sort=None) for rows in (1, 0)
    )
    assert len(few.splitlines()) < len(all_rows.splitlines())


def test_the_stage_that_ran_is_shown_before_those_within_it() -> None:
    fit, validate = built_profiles.training(), built_profiles.training()
    fit.trace.stage, validate.trace.stage = "fit", "validate"
    stages = {Stage.SANITY_CHECK: windows(validate), Stage.FIT: windows(fit), Stage.VALIDATE: windows(validate)}
    assert "stage fit" in summarize(stages, main="fit", rows=5, sort=None)


def test_the_newest_window_with_a_trace_is_shown() -> None:
    first, last = built_profiles.training(), built_profiles.training()
    first.trace.window, last.trace.window = 1, 2
    first.trace.stage = last.trace.stage = "fit"
    assert "window 2" in summarize({Stage.FIT: windows(first, last, None)}, main="fit", rows=5, sort=None)


@pytest.mark.parametrize("stages", [{}, {Stage.FIT: windows(None)}])
def test_where_nothing_was_recorded_there_is_nothing_to_say(stages: dict[Stage, SimpleNamespace]) -> None:
    assert summarize(stages, main="fit", rows=5, sort=None) == ""
