"""`deepscope.profile` in all its uses: around a block, on a function, by hand, over a loader, as a callback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import deepscope
from deepscope.errors import NestedProfileError, OptionError, RecorderError
from recorded import TESTS, Net, OutOfMemoryError, load, loader, run_python, scopes_of, step_names, steps, train_step


def train(batches: Iterator[Any]) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in batches:
        train_step(net, optimizer, batch)


def operators(path: Path) -> set[str]:
    return {event["name"] for event in load(path)["traceEvents"] if event.get("cat") == "cpu_op"}


def test_a_block_is_recorded_whole(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        torch.ones(3).sum()
    (path,) = recording.traces
    assert "aten::sum" in operators(path)
    assert step_names(path) == []


def test_steps_of_a_block_without_a_schedule_are_marked(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        for _ in range(2):
            torch.ones(3).sum()
            recording.step()
    assert step_names(recording.traces[0]) == steps(0, 1)


def test_one_number_of_a_schedule_makes_one(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, active=2) as recording:
        for _ in range(6):
            torch.ones(3).sum()
            recording.step()
    assert step_names(recording.traces[0]) == steps(2, 3)


def test_iterate_steps_by_itself_and_marks_the_loader(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=2) as recording:
        train(recording.iterate(loader()))
    (path,) = recording.traces
    events = load(path)["traceEvents"]
    assert step_names(path) == steps(2, 3)
    assert sum(event["name"] == "deepscope.data" for event in events) == 2


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_iterate_knows_from_the_loader_how_short_the_run_is(tmp_path: Path, batches: int) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=3) as recording:
        train(recording.iterate(loader(batches)))
    (path,) = recording.traces
    assert step_names(path) == steps(batches - 1)


@pytest.mark.parametrize("works", [False, True])
def test_waiting_behind_the_last_batch_is_not_a_step_nor_what_another_thread_does(tmp_path: Path, works: bool) -> None:
    ended = threading.Event()

    def prefetch() -> None:
        while works and not ended.is_set():
            torch.ones(3).sum()

    def batches() -> Iterator[Any]:
        yield from loader(3)
        time.sleep(0.05)  # long enough for a span of the recorder's own, off the CPU

    thread = threading.Thread(target=prefetch)
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=3) as recording:
        thread.start()
        train(recording.iterate(batches()))
    ended.set()
    thread.join()
    (path,) = recording.traces
    assert step_names(path) == steps(2)


def test_iterate_over_a_generator_yields_a_trace_of_one_batch(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=1) as recording:
        train(recording.iterate(batch for batch in loader(1)))
    assert step_names(recording.traces[0]) == steps(0)


def test_iterate_opens_and_closes_a_recording_that_is_not_open(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS)
    train(recording.iterate(loader(2)))
    assert step_names(recording.traces[0]) == steps(0, 1)


def test_start_and_stop_by_hand(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS).start()
    assert recording.is_recording
    torch.ones(3).sum()
    recording.stop()
    assert not recording.is_recording
    assert "aten::sum" in operators(recording.traces[0])


def test_each_call_of_a_decorated_function_is_a_recording(tmp_path: Path) -> None:
    @deepscope.profile(tmp_path, root=TESTS)
    def compute(depth: int) -> torch.Tensor:
        return torch.ones(3).sum() if depth == 0 else compute(depth - 1)

    compute(2)
    compute(0)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_decorated_coroutine_is_recorded_while_it_runs(tmp_path: Path) -> None:
    @deepscope.profile(tmp_path, root=TESTS)
    async def compute() -> float:
        await asyncio.sleep(0)
        return torch.ones(3).sum().item()

    assert asyncio.run(compute()) == 3.0
    (path,) = tmp_path.iterdir()
    assert "aten::sum" in operators(path)


def test_a_generator_cannot_be_decorated() -> None:
    with pytest.raises(RecorderError, match="with `with` inside"):

        @deepscope.profile()
        def batches() -> Iterator[int]:
            yield 1


def test_an_exception_keeps_the_trace_and_reaches_the_caller(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS)

    def run_out_of_memory() -> None:
        with recording:
            torch.ones(3).sum()
            raise OutOfMemoryError("CUDA out of memory")

    with pytest.raises(OutOfMemoryError):
        run_out_of_memory()
    own = load(recording.traces[0])["deepscope"]
    assert own["complete"] is False
    assert "aten::sum" in operators(recording.traces[0])


def test_an_exception_that_leaves_a_callbacks_block_ends_its_window_early(tmp_path: Path) -> None:
    def train_until(error: BaseException | None) -> None:
        with deepscope.callback(tmp_path, root=TESTS, wait=1, warmup=0, active=50, profile_memory=True) as on_step:
            recordings.append(on_step.recording)
            for _ in range(3):
                torch.ones(3).sum()
                on_step()
            if error is not None:
                raise error

    recordings: list[deepscope.Recording] = []
    for error in (None, ValueError("no such thing"), OutOfMemoryError("CUDA out of memory")):
        with suppress(ValueError, RuntimeError):
            train_until(error)
    whole, cut, full = (load(recording.traces[0])["deepscope"] for recording in recordings)
    assert (whole["complete"], cut["complete"], full["complete"]) == (True, False, False)
    assert (cut["memory"]["failure"], full["memory"]["failure"]["message"]) == (None, "CUDA out of memory")


def test_a_loop_that_is_left_by_break_is_complete_and_one_that_an_exception_leaves_is_not(tmp_path: Path) -> None:
    def through(items: Iterator[int]) -> Iterator[int]:  # as a progress bar
        yield from (item for item in items)

    def left_by(error: type[BaseException] | None, around: Callable[[Any], Any]) -> bool:
        recording = deepscope.profile(tmp_path, lines=False, counters=False)
        with suppress(ValueError):
            for item in around(recording.iterate([1, 2, 3])):
                if item == 2:
                    torch.ones(3).sum()
                    if error is not None:
                        raise error
                    break
        return bool(load(recording.traces[0])["deepscope"]["complete"])

    for around in (iter, through):
        assert left_by(None, around)
        assert not left_by(ValueError, around)


def test_nested_use_says_what_is_wrong(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS):
        with pytest.raises(NestedProfileError, match="already open"):
            deepscope.profile(tmp_path, root=TESTS).start()


def test_a_callback_records_the_steps_after_its_first_call(tmp_path: Path) -> None:
    for number, wait in enumerate((1, 0)):  # what ran before the first call cannot be recorded
        with deepscope.callback(tmp_path / str(number), root=TESTS, wait=wait, warmup=0, active=2) as on_step:
            on_step.recording.add_metadata("wait", wait)
            for index in range(5):
                torch.ones(3).sum()
                on_step(index, loss=0.5)
        (trace,) = on_step.recording.traces
        assert step_names(trace) == steps(1, 2)
        assert sum(event["name"] == "aten::ones" for event in load(trace)["traceEvents"]) == 2
        assert load(trace)["deepscope"]["metadata"] == {"wait": wait}


def test_a_line_that_a_window_opens_in_has_as_many_calls_as_steps(tmp_path: Path) -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(6):
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()

    callback = deepscope.callback(tmp_path, wait=1, warmup=1, active=3, root=TESTS)
    handle = optimizer.register_step_post_hook(lambda *_: callback())
    train()
    handle.remove()
    callback.close()
    profile = callback.recording.profile
    assert profile is not None
    first = train.__code__.co_firstlineno
    calls = {line.line - first: line.calls for line in profile.lines if line.function.endswith("train")}
    assert calls == {1: 3, 2: 3, 3: 3}
    (under_way,) = [line for line in profile.lines if line.line == first + 7]
    assert under_way.calls == 1


def test_the_result_is_at_hand_in_the_process(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=3) as recording:
        train(recording.iterate(loader()))
    profile = recording.profile
    assert profile is not None
    assert profile.metric == "cpu_self"
    assert profile.totals.steps == 3
    assert {Path(line.file).name for line in profile.lines} >= {"recorded.py"}
    assert all(line.exact for line in profile.lines)


def test_lines_that_were_running_before_the_window_have_scopes(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS, wait=1, warmup=1, active=1) as recording:
        train(recording.iterate(loader()))
    assert any(name.endswith(": train") for name in scopes_of(recording.traces[0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activ": 3}, "activ=3: no such option"),
        ({"active": 0}, "active=0: must be an integer, 1 or more"),
        ({"wait": -1}, "wait=-1"),
        ({"wait": 1.5}, "wait=1.5"),
        ({"source": "full"}, "'text', 'hash', 'none'"),
        ({"schedule": 3}, "schedule=3"),
        ({"root": "/does/not/exist"}, "must be an existing folder"),
        ({"ranks": [-1]}, "ranks="),
        ({"include": [3]}, "include="),
        ({"on_trace_ready": 3}, "on_trace_ready=3"),
    ],
)
def test_options_are_checked_where_they_are_given(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        deepscope.profile(**options)
    assert message in str(caught.value)


def test_importing_deepscope_imports_neither_torch_nor_numpy() -> None:
    program = "import sys, deepscope; print({'torch', 'numpy', 'msgspec'} & sys.modules.keys() or 'none')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=250)
    assert done.stdout.strip() == "none"


def test_a_public_name_without_torch_names_the_command_that_brings_it() -> None:
    program = "import sys; sys.modules['torch'] = None; import deepscope; deepscope.profile"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=250)
    assert "pip install 'deepscope[torch]'" in done.stderr


@pytest.mark.parametrize("name", deepscope.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(deepscope, name) is not None
    assert name in dir(deepscope)


def test_an_annotation_has_the_name_that_it_was_given_in_any_letters(tmp_path: Path) -> None:
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        for _ in range(2):
            with recording.annotate('Größe "x" \\ y'):
                torch.ones(3).sum()
    spans = [event for event in load(recording.traces[0])["traceEvents"] if event["name"] == 'Größe "x" \\ y']
    assert [span["cat"] for span in spans] == ["user_annotation"] * 2


def test_quotes_in_a_name_of_the_users_own_do_not_cost_the_trace(tmp_path: Path) -> None:
    names = ['say "hi"', '"', 'pid": "x', '",']
    with deepscope.profile(tmp_path, root=TESTS) as recording:
        for name in names:
            with torch.profiler.record_function(name):
                torch.ones(3).sum()
    (trace,) = recording.traces
    spans = [event["name"] for event in load(trace)["traceEvents"] if event.get("cat") == "user_annotation"]
    # torch 2.14 writes ' for " by itself.
    assert spans in (names, [name.replace('"', "'") for name in names])


class OddLoader:
    """With workers, and without room for anything more."""

    __slots__ = ("num_workers",)

    def __init__(self) -> None:
        self.num_workers = 2

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


def test_a_loader_that_takes_no_attribute_and_has_no_length_is_iterated_as_it_is(tmp_path: Path) -> None:
    recording = deepscope.profile(tmp_path, root=TESTS, wait=1)
    odd: Any = OddLoader()
    assert [batch for batch in recording.iterate(odd)] == list(range(6))  # noqa: C416 - list() would ask for the length
    assert len(recording.traces) == 1


def test_processes_started_in_a_run_know_it_and_those_after_it_do_not(tmp_path: Path) -> None:
    def run_id_of_a_child() -> str:
        return run_python("import os; print(os.environ.get('DEEPSCOPE_RUN_ID', ''))").stdout.strip()

    with deepscope.profile(tmp_path, root=TESTS) as recording:
        inside = run_id_of_a_child()
    assert inside
    assert load(recording.traces[0])["deepscope"]["run_id"].startswith(f"{inside}-")
    assert run_id_of_a_child() == ""


def paused(folder: Path, pauses: Collection[int], steps: int = 12, **schedule: int) -> list[list[str]]:
    """The steps of each trace of a loop that pauses behind the steps of these numbers, and works meanwhile."""
    recording = deepscope.profile(folder, root=TESTS, total_steps=steps, **schedule).start()
    for number in range(steps):
        torch.ones(3).sum()
        recording.step()
        if number in pauses:
            torch.ones(3).prod()
            recording.pause()
            torch.ones(3).prod()
            recording.resume()
    recording.stop()
    return [step_names(path) for path in recording.traces]


@pytest.mark.parametrize(
    ("pauses", "recorded"),
    [
        ({3}, [steps(2, 3)]),
        ({0}, [steps(2, 3, 4)]),
        ({1}, [steps(2, 3, 4)]),
        ({4}, [steps(2, 3, 4)]),
        ({7}, [steps(2, 3, 4)]),
        ({0, 1, 2, 3}, [steps(2)]),
    ],
)
def test_a_pause_ends_an_open_window_and_puts_off_one_that_has_no_step(
    tmp_path: Path, pauses: set[int], recorded: list[list[str]]
) -> None:
    assert paused(tmp_path, pauses, wait=1, warmup=1, active=3) == recorded


def test_behind_a_pause_the_schedule_goes_on_with_its_next_cycle(tmp_path: Path) -> None:
    expected = [steps(2, 3), steps(6, 7, 8)]
    assert paused(tmp_path, {3}, wait=1, warmup=1, active=3, repeat=2) == expected


def test_a_pause_leaves_the_recording_of_a_whole_block_as_it_is(tmp_path: Path) -> None:
    assert paused(tmp_path, {3}) == [steps(*range(12))]
