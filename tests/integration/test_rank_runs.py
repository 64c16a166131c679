"""Real runs of four ranks, each of which leaves a whole trace of the same steps and the same run."""

import pytest

from deepscope import load_profile
from deepscope.trace.read import read_trace
from rank_runs import RANKS, rank_run, rank_traces
from recorded import step_names, steps

RUNS = [
    pytest.param("ddp", (), (2, 3, 4, 5), {"gloo:all_reduce"}, id="ddp"),
    pytest.param("fsdp", (), (2, 3, 4), {"gloo:all_gather"}, id="fsdp2"),
    pytest.param("fsdp", ("1",), (2, 3, 4), {"gloo:all_gather"}, id="fsdp1"),
    pytest.param("pipeline", ("1f1b",), (2, 3, 4), {"gloo:send", "gloo:recv"}, id="pipeline-1f1b"),
    pytest.param("pipeline", ("hand",), (2, 3, 4), {"gloo:send", "gloo:recv"}, id="pipeline-by-hand"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "arguments", "recorded", "transfers"), RUNS)
def test_all_ranks_record_the_same_steps_of_the_same_run(program, arguments, recorded, transfers):
    paths = rank_traces(rank_run(program, *arguments))
    traces = [read_trace(path) for path in paths]
    headers = [trace.header for trace in traces]
    assert sorted(header.rank for header in headers) == list(range(RANKS))
    assert {(header.world_size, header.window, header.complete) for header in headers} == {(RANKS, 0, True)}
    assert len({header.run_id for header in headers}) == 1
    assert [step_names(path) for path in paths] == [steps(*recorded)] * RANKS
    assert all(transfers <= set(trace.strings) for trace in traces)


@pytest.mark.thorough
def test_the_ranks_of_a_run_are_one_profile():
    profile = load_profile(rank_run("ddp"), cache=False)
    assert profile.trace.ranks == list(range(RANKS))
    assert {step.number for step in profile.steps} == {2, 3, 4, 5}
