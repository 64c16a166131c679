"""Each way in which a recorder of lines can crash, lie or leave something behind, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRELUDE = """
import os, sys, threading, warnings
import torch
from torch.profiler import ProfilerActivity, profile
from deepscope.capture.lines import LineRecorder, UserCode
from pathlib import Path
sys.path.insert(0, {tests!r})
from line_truth import everywhere, read_spans

HERE = Path(__file__).parent
monitored = sys.version_info >= (3, 12)
recorder = LineRecorder(UserCode.find(root=HERE))

class Window:
    def __init__(self, all_threads=False, recorder=recorder):
        config = everywhere() if all_threads else None
        self.torch = profile(activities=[ProfilerActivity.CPU], experimental_config=config)
        self.recorder = recorder
        self.spans = None
    def __enter__(self):
        self.torch.__enter__()
        self.recorder.start()
        return self
    def __exit__(self, *error):
        self.record = self.recorder.stop()
        self.torch.__exit__(*error)
    def lines_of(self, name):
        if self.spans is None:
            self.torch.export_chrome_trace(str(HERE / "raw.json"))
            self.spans = read_spans(HERE / "raw.json", self.record)
        return [[line for _, line in span.lines] for span in self.spans if span.name == name]

def hooks():
    if monitored:
        return [sys.monitoring.get_tool(number) for number in range(6)]
    return [sys.gettrace(), threading.gettrace(), sys._getframe(1).f_trace]

clean = hooks()
SOURCE = Path(__file__).read_text().splitlines()
def line_of(mark):
    return next(number for number, text in enumerate(SOURCE, 1) if text.endswith("# " + mark))
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs a script under the prelude; the process must end well and say `done`."""

    def call(script: str, *, warnings: str = "error", check: bool = True) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        tests = str(Path(__file__).parents[2])
        path.write_text(PRELUDE.format(tests=tests) + textwrap.dedent(script) + "\nprint('done')\n")
        command = [sys.executable, "-W", warnings, "-W", "ignore::DeprecationWarning", str(path)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if check:
            assert result.returncode == 0, result.stderr[-3000:]
            assert result.stdout.endswith("done\n"), result.stdout[-2000:]
        return result

    return call


def test_a_thread_with_open_scopes_outlives_its_window_and_the_next(run) -> None:
    """A scope closed or freed in a later window corrupts torch's heap."""
    run("""
    import gc
    go, ready = threading.Event(), threading.Event()
    def inner():
        x = torch.ones(3)
        ready.set()
        go.wait()
        return x + 1
    def work():
        y = inner()
        return y * 2
    for _ in range(3):
        go.clear(); ready.clear()
        with Window(all_threads=True):
            thread = threading.Thread(target=work)
            thread.start()
            ready.wait()
        gc.collect()
        with Window(all_threads=True):
            go.set()
            thread.join()
            gc.collect()
            torch.ones(4).sum()
    assert hooks() == clean
    """)


def test_a_window_closed_on_another_thread_closes_nothing_and_says_so(run) -> None:
    run(
        """
    window = Window()
    with profile(activities=[ProfilerActivity.CPU]):
        recorder.start()
        x = torch.ones(2) + 1
        thread = threading.Thread(target=lambda: records.append(recorder.stop())); records = []
        thread.start()
        thread.join()
    assert "another thread" in records[0].account["warnings"][0]
    if not monitored:
        sys.settrace(None)
    for _ in range(3):
        with Window():
            x = torch.ones(2) + 1
    """,
        warnings="ignore",
    )


def test_a_recorder_that_starts_and_stops_without_a_recording_does_nothing_bad(run) -> None:
    run("""
    for _ in range(3):
        recorder.start()
        x = torch.ones(2) + 1
        record = recorder.stop()
        assert record.account["warnings"] == [], record.account
    with Window() as window:
        x = torch.ones(2) + 1
    assert recorder.stop().scopes == []
    """)


def test_exceptions_of_the_user_arrive_as_they_are(run) -> None:
    """DISABLE from PY_UNWIND would put a ValueError in their place."""
    run("""
    class Mine(Exception): pass
    def far(depth):
        if depth == 0:
            raise Mine("mine")
        return sorted([1], key=lambda _: far(depth - 1))
    def stopping():
        yield 1
        raise StopIteration
    with Window():
        for _ in range(20):
            try:
                far(4)
            except Mine as error:
                assert error.args == ("mine",) and error.__context__ is None
            try:
                list(stopping())
            except RuntimeError as error:
                assert isinstance(error.__cause__, StopIteration)
            try:
                int("x")
            except ValueError:
                pass
    assert hooks() == clean
    """)


def test_each_window_sees_what_the_one_before_switched_off(run) -> None:
    """Disabling holds per code location for the process, past the window; another selection must see again."""
    run("""
    import json.decoder
    def work():
        json.loads("[1]")
        return torch.ones(2) + 1  # add
    for _ in range(3):
        with Window() as window:
            work()
        assert window.lines_of("aten::add")[0][0] == line_of("add")
    opened = LineRecorder(UserCode.find(root=HERE, include=["json"]))
    with Window(recorder=opened) as window:
        work()
    assert {row.name for row in window.record.scopes if "json" in row.file} >= {"loads", "JSONDecoder.decode"}
    with Window() as window:
        work()
    assert not any("json" in row.file for row in window.record.scopes)
    """)


def test_frames_that_ran_before_the_window_have_their_lines(run) -> None:
    run("""
    def opening():
        recorder.start()
        return torch.ones(2) + 1  # inner
    def outer():
        y = opening()  # call
        return y * 2  # after
    window = Window()
    with window.torch:
        z = outer()  # top
        window.record = recorder.stop()
    assert window.lines_of("aten::add")[0] == [line_of("inner"), line_of("call"), line_of("top")]
    assert window.lines_of("aten::mul")[0] == [line_of("after"), line_of("top")]
    assert hooks() == clean
    """)


def test_one_line_lambdas_and_generator_expressions_have_a_scope_in_their_first_run(run) -> None:
    run("""
    x = torch.ones(2)
    with Window() as window:
        f = lambda t: t * 2  # lambda
        f(x)  # call
        total = sum(t.neg() for t in (x, x))  # generator
        def g(t): return t.exp()  # one-liner
        g(x)
    assert window.lines_of("aten::mul") == [[line_of("lambda"), line_of("call")]]
    assert window.lines_of("aten::neg") == [[line_of("generator")] * 2] * 2
    assert window.lines_of("aten::exp")[0][0] == line_of("one-liner")
    """)


def test_generators_closed_thrown_into_and_left_hanging_close_their_scopes(run) -> None:
    run("""
    def numbers(t):
        try:
            while True:
                yield t.neg()
        except ValueError:
            yield t.exp()
    with Window() as window:
        hanging = [numbers(torch.ones(2)) for _ in range(5)]
        for generator in hanging: next(generator)
        hanging[0].close()
        hanging[1].throw(ValueError())
        del hanging[2]
        torch.ones(2).cos()  # cos
    with Window() as second:
        for generator in hanging:
            next(generator, None)
        torch.ones(2).sin()  # sin
    assert window.lines_of("aten::cos") == [[line_of("cos")]]
    assert second.lines_of("aten::sin") == [[line_of("sin")]]
    """)


def test_a_profiler_that_holds_a_tool_id_keeps_it(run) -> None:
    run("""
    import cProfile
    profiler = cProfile.Profile()
    profiler.enable()
    with Window() as window:
        x = torch.ones(2) + 1  # add
    profiler.disable()
    assert window.lines_of("aten::add")[0] == [line_of("add")]
    assert profiler.getstats()
    """)


def test_taken_tool_ids_are_not_stolen(run) -> None:
    result = run(
        """
    if monitored:
        for number in (1, 2, 3, 4):
            sys.monitoring.use_tool_id(number, f"tool{number}")
    else:
        holder = lambda *_: None
        sys.settrace(holder)
    with Window() as window:
        x = torch.ones(2) + 1
    with Window() as window:
        x = torch.ones(2) + 1
    account = window.record.account
    assert account["backend"] is None and len(account["warnings"]) == 1, account
    assert window.record.entries == []
    if monitored:
        assert [sys.monitoring.get_tool(number) for number in (1, 2, 3, 4)] == ["tool1", "tool2", "tool3", "tool4"]
    else:
        assert sys.gettrace() is holder
        sys.settrace(None)
    """,
        warnings="always",
    )
    assert result.stderr.count("RecordingWarning: DeepScope: lines are not recorded") == 2  # one a window


def test_hooks_are_gone_in_a_forked_child(run) -> None:
    run("""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Window() as window:
            child = os.fork()
            if child == 0:
                try:
                    assert hooks() == clean
                    x = [i for i in range(10)]
                    os.write(write, b"clean")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            y = torch.ones(2) + 1  # add
    assert os.read(read, 10) == b"clean"
    assert window.lines_of("aten::add")[0] == [line_of("add")]
    """)


def test_threads_started_in_the_window_have_their_own_lines_and_no_hook_after_it(run) -> None:
    run("""
    left = []
    ready = threading.Barrier(4)
    def work():
        y = torch.ones(2) * 3  # mul
        ready.wait()
        stop.wait()
        z = [i for i in range(3)]
        left.append(None if monitored else sys.gettrace())
    stop = threading.Event()
    with Window(all_threads=True) as window:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        ready.wait()
        x = torch.ones(2) + 1  # add
    stop.set()
    for thread in threads: thread.join()
    assert [lines[0] for lines in window.lines_of("aten::mul")] == [line_of("mul")] * 3
    assert window.lines_of("aten::add") == [[line_of("add")]]
    assert left == [None] * 3
    assert window.record.account["threads"] == 4
    assert hooks() == clean
    """)


def test_threads_that_torch_does_not_record_cost_no_scope(run) -> None:
    run("""
    def work():
        y = torch.ones(2) * 3
        z = y + 1
    with Window() as window:
        thread = threading.Thread(target=work)
        thread.start(); thread.join()
    assert "work" not in {row.name for row in window.record.scopes}
    assert window.record.account["threads"] == 1
    """)


def test_a_failure_in_a_hook_ends_the_recording_and_not_the_run(run) -> None:
    result = run(
        """
    from deepscope.capture.lines import table
    def broken(self):
        raise ZeroDivisionError("planted")
    def work():
        y = torch.ones(2) + 1
        return y * 2
    whole = table.Slot.pair
    with Window() as window:
        x = torch.ones(2) + 1
        table.Slot.pair = broken
        work()
        z = x * 2
    table.Slot.pair = whole
    assert "planted" in window.record.account["warnings"][0]
    assert hooks() == clean
    with Window() as window:
        work()
    assert window.record.account["warnings"] == []
    """,
        warnings="always",
    )
    assert result.stderr.count("RecordingWarning") == 1


def test_ctrl_c_in_the_window_reaches_the_user_and_leaves_nothing(run) -> None:
    run("""
    import signal
    def spin():
        total = 0
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + turn * 0.00003)
        while True:
            total += 1
            total -= 1
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for turn in range(30):
        caught = False
        window = Window()
        try:
            with window:
                spin()
        except KeyboardInterrupt:
            caught = True
        assert caught
        assert window.record.account["warnings"] == [], window.record.account
        assert hooks() == clean
        with Window() as window:
            x = torch.ones(2) + 1  # add
        assert window.lines_of("aten::add")[0] == [line_of("add")]
    """)


def test_recursion_and_reentrance_use_one_scope_for_each_open_run(run) -> None:
    run("""
    def down(n, x):
        return x + 1 if n == 0 else down(n - 1, x)  # down
    with Window() as window:
        for _ in range(3):
            down(50, torch.ones(2))  # call
    assert window.lines_of("aten::add") == [[line_of("down")] * 51 + [line_of("call")]] * 3
    """)


def test_the_scopes_fall_back_to_record_function(run) -> None:
    run("""
    class Hidden:
        def __getattr__(self, name):
            if name == "_RecordFunctionFast":
                raise AttributeError(name)
            return getattr(original, name)
    original = torch._C._profiler
    torch._C._profiler = Hidden()
    hidden_enabled = torch.autograd.__dict__.pop("_profiler_enabled", None)
    with Window() as window:
        x = torch.ones(2) + 1  # add
    torch._C._profiler = original
    assert window.record.account["warnings"] == [], window.record.account
    assert window.lines_of("aten::add")[0] == [line_of("add")]
    """)


def test_a_debugger_that_arrives_in_the_window_keeps_its_hook(run) -> None:
    run("""
    seen = []
    def debugger(frame, event, arg):
        seen.append(frame.f_code.co_name)
        return None
    def work(): return torch.ones(2) + 1
    with Window():
        work()
        sys.settrace(debugger)
        work()
    assert sys.gettrace() is debugger
    sys.settrace(None)
    assert "work" in seen
    """)
