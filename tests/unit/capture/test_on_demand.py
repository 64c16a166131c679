"""Jobs that are asked while they run: the idle recorder and its windows."""

import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture import torch_compat
from deepscope.capture.on_demand.protocol import ControlRequest
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.program import Span


def loop():
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], 0.1)

    def step():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    return step


def test_idle_there_is_one_hook_and_one_waiting_thread(runtime, tmp_path):
    def hooks():
        tools = [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else []
        return (
            sys.gettrace(), sys.getprofile(), threading.gettrace(), tools,
            len(torch.nn.modules.module._global_forward_hooks), len(torch.nn.modules.module._global_forward_pre_hooks),
            torch.autograd._profiler_enabled(), torch.autograd.profiler._prepare_profiler, torch.autograd.backward,
            torch.utils.data.dataloader._MultiProcessingDataLoaderIter,
        )  # fmt: skip

    before, threads = hooks(), set(threading.enumerate())
    post_hooks = len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks)
    step = loop()
    with deepscope.on_demand(tmp_path) as opened:
        for _ in range(5):
            step()
        assert hooks() == before
        (waiting,) = set(threading.enumerate()) - threads
        assert waiting.name == "deepscope-control"
        assert waiting.daemon
        until = time.monotonic() + 60
        while (frame := sys._current_frames()[waiting.ident]).f_code.co_name != "accept" and time.monotonic() < until:
            pass
        assert frame.f_code.co_name == "accept"  # it waits in the system, without a time-out
        assert opened._control._socket.gettimeout() is None
        assert len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks) == post_hooks + 1
        assert opened.idle_recorder.count == 5
    waiting.join(60)
    assert set(threading.enumerate()) <= threads  # those of earlier tests may have ended
    assert len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks) == post_hooks
    assert list((runtime / "deepscope").iterdir()) == []
    assert not optimizer_steps._listeners


def test_after_a_window_all_hooks_are_gone(control, connect):
    step, asking = loop(), connect()
    tools = [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else []
    assert asking.ask(ControlRequest("start", "ab", step=3, steps=2)).accepted
    assert asking.ask(ControlRequest("commit", "ab")).accepted
    traced = set()
    for _ in range(8):
        step()
        traced.add(sys.gettrace() is not None or torch_compat.is_recording())
    assert traced == {False, True}
    answer = asking.ask(ControlRequest("look"))
    until = time.monotonic() + 60
    while answer.state == "saving" and time.monotonic() < until:
        answer = asking.ask(ControlRequest("look"))
    assert answer.state == "saved", answer
    assert sys.gettrace() is None
    assert not torch.autograd._profiler_enabled()
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(i) for i in range(6)] == tools
    profile = deepscope.load_profile(answer.traces[0], cache=False)
    assert [one.number for one in profile.steps] == [3, 4]


def window(asking, step, id_, first):
    """Two steps from `first` on, as `deepscope attach` has them recorded; what became of it."""
    assert asking.ask(ControlRequest("start", id_, step=first, steps=2)).accepted
    assert asking.ask(ControlRequest("commit", id_)).accepted
    for _ in range(6):
        step()
    until = time.monotonic() + 60
    answer = asking.ask(ControlRequest("look"))
    while answer.state not in {"saved", "failed"} and time.monotonic() < until:
        answer = asking.ask(ControlRequest("look"))
    return answer


def test_a_rank_that_was_not_chosen_says_so(runtime, connect, tmp_path):
    with deepscope.on_demand(tmp_path / "traces", ranks=[1]):
        asking = connect()
        answer = window(asking, loop(), "ab", 3)
    assert answer.state == "failed"
    assert answer.problem == "this rank does not record: the job was started with ranks=1"
    assert not (tmp_path / "traces").exists()


def open_counters() -> int:
    time.sleep(0.02)
    opened: list[str] = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            opened.append(str(one.readlink()))
    return sum(one.startswith("/proc/") for one in opened)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="counters of /proc")
def test_counters_of_the_whole_run_are_one_file_and_windows_leave_none_open(runtime, connect, tmp_path):
    traces = tmp_path / "traces"
    open_files: list[int] = []
    with deepscope.on_demand(traces, counters="run", counter_interval=0.01):
        step = loop()
        for number in range(3):
            asking = connect()
            assert window(asking, step, f"a{number}", 3 + 6 * number).state == "saved"
            open_files.append(min(open_counters() for _ in range(5)))  # a sample opens some for a moment
        assert not list(traces.glob("*.counters"))
    assert len(set(open_files)) == 1, open_files
    assert len(list(traces.glob("*.trace.json.gz"))) == 3
    assert len(list(traces.glob("*.counters"))) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]


def test_a_window_that_is_given_up_in_its_warm_up_is_forgotten(control, connect, tmp_path):
    step, asking = loop(), connect()
    assert asking.ask(ControlRequest("start", "ab", step=4, steps=2)).accepted
    assert asking.ask(ControlRequest("commit", "ab")).accepted
    for _ in range(3):
        step()
    assert asking.ask(ControlRequest("look")).state == "recording"
    asking.ask(ControlRequest("stop", "ab"))
    for _ in range(3):
        step()
    until = time.monotonic() + 30
    while (answer := asking.ask(ControlRequest("look"))).state == "saving" and time.monotonic() < until:
        pass
    assert answer.state == "failed"
    assert not (tmp_path / "traces").exists()
    assert not torch.autograd._profiler_enabled()


class Preempted(Exception):
    pass


def preempted(*_):
    raise Preempted


@pytest.mark.parametrize("moment", ["prepare", "export"])
def test_what_a_signals_handler_raises_reaches_the_program(control, connect, monkeypatch, moment):
    from deepscope.capture.window import Window

    act = getattr(Window, moment)

    def beside_a_signal(self, *arguments):
        act(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Window, moment, beside_a_signal)
    before = signal.signal(signal.SIGTERM, preempted)
    step, asking = loop(), connect()

    def several(count):
        for _ in range(count):
            step()

    try:
        assert asking.ask(ControlRequest("start", "ab", step=3, steps=2)).accepted
        assert asking.ask(ControlRequest("commit", "ab")).accepted
        with pytest.raises(Preempted):
            several(8)
        monkeypatch.undo()
        several(8)
    finally:
        signal.signal(signal.SIGTERM, before)
    until = time.monotonic() + 30
    while (answer := asking.ask(ControlRequest("look"))).state not in {"saved", "failed"} and time.monotonic() < until:
        pass
    assert answer.state == ("saved" if moment == "export" else "failed")


def test_a_program_that_ends_as_its_span_is_to_begin_does_not_wait_for_it(runtime, tmp_path, monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr("deepscope.capture.process_hooks.threads.call_soon", lambda _: asked.set() or True)
    span = Span(tmp_path / "traces", 0.01, 60)
    span.__enter__()
    assert asked.wait(30)
    ending = threading.Thread(target=span.__exit__, args=(None, None, None), daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive()
    assert span.traces == []
    assert not span._idle.answer(ControlRequest("now", "ab", warmup=0)).accepted  # nothing begins any more


def test_a_span_that_cannot_begin_says_why(runtime, tmp_path, monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr("deepscope.capture.process_hooks.threads.call_soon", lambda _: asked.set())
    span = Span(tmp_path / "traces", 0.01, 60)
    span.__enter__()
    assert asked.wait(30)
    while any(thread.name == "deepscope-span" for thread in threading.enumerate()):
        time.sleep(0.01)
    with pytest.warns(deepscope.RecordingWarning, match="nothing was recorded: .* no call on its main thread"):
        span.__exit__(None, None, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_window_by_time_opens_reaches_the_program(control, connect, monkeypatch, number):
    """The window opens in a call from C, which no exception leaves."""
    from deepscope.capture.window import Window

    prepare = Window.prepare

    def beside_a_signal(self):
        prepare(self)
        signal.raise_signal(number)

    monkeypatch.setattr(Window, "prepare", beside_a_signal)
    before = signal.signal(number, preempted)
    asking = connect()

    def wait():
        until = time.monotonic() + 60
        while time.monotonic() < until:
            sum(range(100))

    threading.Timer(0.2, lambda: asking.ask(ControlRequest("now", "ab", warmup=0))).start()
    try:
        with pytest.raises(Preempted):
            wait()
    finally:
        signal.signal(number, before)
    monkeypatch.setattr(Window, "prepare", prepare)
    assert asking.ask(ControlRequest("look")).state == "recording"


class Impatient:
    """A lock for which nobody waits forever."""

    def __init__(self):
        self._lock = threading.Lock()
        self.locked = self._lock.locked

    def __enter__(self):
        assert self._lock.acquire(timeout=60), "a thread waits for itself"

    def __exit__(self, *_):
        self._lock.release()


def test_a_step_that_waits_while_the_end_is_asked_for_does_not_wait_for_itself(control, connect):
    """The main thread gets the lock and, before its next instruction, the call that ends the window."""
    idle, asking, is_held = control.idle_recorder, connect(), threading.Event()
    idle._lock._lock = Impatient()
    assert asking.ask(ControlRequest("now", "ab", warmup=0)).accepted
    until = time.monotonic() + 60
    while asking.ask(ControlRequest("look")).state != "recording" and time.monotonic() < until:
        pass

    def end():
        with idle._lock._lock:
            is_held.set()
            time.sleep(0.2)  # the step is at the lock by then
            idle._stop(ControlRequest("stop", "ab"))

    ending = threading.Thread(target=end)
    ending.start()
    assert is_held.wait(60)
    control.step()
    ending.join()
    while (answer := asking.ask(ControlRequest("look"))).state == "saving" and time.monotonic() < until:
        pass
    assert answer.state == "saved"


def test_a_window_by_time_that_ended_by_itself_is_no_error(control, connect):
    step, asking = loop(), connect()
    assert asking.ask(ControlRequest("start", "ab", step=3)).accepted
    assert asking.ask(ControlRequest("commit", "ab")).accepted
    for _ in range(5):
        step()
    control.idle_recorder.cut_short("another stage of the Trainer begins")
    ending = asking.ask(ControlRequest("end", "ab", step=9))
    assert ending.accepted, ending.problem
    assert asking.ask(ControlRequest("commit", "ab")).accepted
    until = time.monotonic() + 60
    while (answer := asking.ask(ControlRequest("look"))).state == "saving" and time.monotonic() < until:
        pass
    assert answer.state == "saved"
    assert answer.notes == ["another stage of the Trainer begins: the window ends after 2 steps"]


def test_steps_follow_the_optimizer_that_trains(control):
    first, second = loop(), loop()
    first(), second(), first(), second()
    assert control.idle_recorder.count == 2  # the second one of a GAN
    del first
    second()
    assert control.idle_recorder.count == 3  # the first one has gone
    third = loop()
    for _ in range(100):
        third()
    assert control.idle_recorder.count == 3 + 100 - 63  # the second one rests
    control.step()
    third()
    assert control.idle_recorder.count == 3 + 100 - 63 + 1  # the program counts by itself
    assert control.idle_recorder.counted_by == "program"


def test_steps_that_the_program_tells_count_once(control, tmp_path):
    from deepscope.capture.callback import callback

    on_step = callback(tmp_path / "own", wait=0, warmup=0, active=1)
    for _ in range(5):
        on_step()
    on_step.close()
    assert control.idle_recorder.count == 5
    with deepscope.profile(tmp_path / "own", wait=0, warmup=0, active=1) as prof:
        for _ in range(3):
            prof.step()
    assert control.idle_recorder.count == 8
