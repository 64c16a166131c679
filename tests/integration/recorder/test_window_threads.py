"""Windows that are opened on one thread, while another one, or nobody, ends them: real programs of their own.

All have `all_threads=False`: a recording of all threads, the recorder's choice from torch 2.14 on, may end on any.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from recorded import TESTS, load, run_python

TRAINING = """
    import sys, threading
    import torch
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step():
        optimizer.zero_grad()
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
"""
CALLBACK = """
    import deepscope
    def train():
        on_step = deepscope.callback(FOLDER, root=ROOT, all_threads=False, wait=1, warmup=1, active=1000)
        for _ in range(6):
            step()
            on_step()
"""


def run(folder: Path, *parts: str, **places: str) -> tuple[int, str]:
    """Runs a program of these parts; returns its exit code and what it wrote to stderr."""
    names = f"FOLDER, ROOT = {str(folder)!r}, {str(TESTS.parent)!r}\n"
    done = run_python(names + "".join(map(textwrap.dedent, (TRAINING, *parts))), KINETO_LOG_LEVEL="9", **places)
    return done.returncode, done.stderr


def operators(trace: Path) -> set[str]:
    return {event["name"] for event in load(trace)["traceEvents"]}


@pytest.mark.parametrize(
    "start",
    [
        "thread = threading.Thread(target=train); thread.start(); thread.join()",
        "threading.Thread(target=train).start()",
        "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(train).result()",
    ],
    ids=["joined", "not joined", "pool"],
)
def test_a_window_that_a_thread_leaves_open_is_saved_as_the_thread_ends(tmp_path: Path, start: str) -> None:
    code, words = run(tmp_path, CALLBACK, start)
    (trace,) = tmp_path.glob("*.gz")
    assert (code, "Warning" in words) == (0, False), words
    own = load(trace)["deepscope"]
    assert own["complete"] is False
    assert own["lines"]["entries"] > 0
    assert not own["lines"].get("warnings")
    assert {"aten::addmm", "ProfilerStep#4", "ProfilerStep#5"} <= operators(trace)


@pytest.mark.parametrize("join", ["thread.join()", ""], ids=["joined", "not joined"])
def test_deepscope_run_records_a_program_that_trains_on_a_thread(tmp_path: Path, join: str) -> None:
    program = tmp_path / "program.py"
    start = "thread = threading.Thread(target=train); thread.start()"
    program.write_text(textwrap.dedent(TRAINING) + f"def train():\n    for _ in range(4): step()\n{start}\n{join}\n")
    command = f"""
        import sys
        from deepscope.cli import main
        sys.argv = ["deepscope", "run", "--folder", FOLDER, "-n", "1", {str(program)!r}]
        main()
    """
    done = run_python(f"FOLDER = {str(tmp_path / 'runs')!r}\n" + textwrap.dedent(command), KINETO_LOG_LEVEL="9")
    (trace,) = (tmp_path / "runs").glob("*.gz")
    assert done.returncode == 0, done.stderr
    assert {"aten::addmm", "ProfilerStep#2", "ProfilerStep#3"} <= operators(trace)
    assert "program.py:" in done.stdout


def test_a_step_counted_on_another_thread_leaves_nothing_of_torchs_profiler_on(tmp_path: Path) -> None:
    code, words = run(
        tmp_path,
        """
        import deepscope
        def count():
            for _ in range(4):
                step()
                prof.step()
        with deepscope.profile(FOLDER, root=ROOT, all_threads=False, wait=0, warmup=0, active=2) as prof:
            step()
            thread = threading.Thread(target=count)
            thread.start()
            thread.join()
            assert sys.gettrace() is None
            if hasattr(sys, "monitoring"):
                assert not any(map(sys.monitoring.get_tool, (3, 4)))
        assert not torch.autograd._profiler_enabled()
        with deepscope.profile(FOLDER, root=ROOT, all_threads=False) as again:
            step()
        assert all(trace.exists() for trace in prof.traces + again.traces)
        assert (len(prof.traces), len(again.traces)) == (1, 1)
        """,
    )
    assert code == 0, words
    assert words.count("RecordingWarning") == 1
    assert "another thread than it was opened on" in words


def test_a_thread_that_goes_on_training_ends_its_window_with_its_next_step(tmp_path: Path) -> None:
    code, words = run(
        tmp_path,
        """
        import deepscope
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            prof = deepscope.profile(FOLDER, root=ROOT, all_threads=False)
            pool.submit(prof.start).result()
            pool.submit(step).result()
            prof.stop()
            assert not prof.traces
            pool.submit(prof.step).result()
            assert not pool.submit(torch.autograd._profiler_enabled).result()
        prof.wait()
        assert prof.traces[0].exists()
        """,
    )
    assert code == 0, words


def test_the_window_of_a_thread_that_outlives_the_process_is_given_up_and_that_is_said(tmp_path: Path) -> None:
    code, words = run(
        tmp_path,
        """
        import deepscope
        trained = threading.Event()
        def train():
            on_step = deepscope.callback(FOLDER, root=ROOT, all_threads=False, wait=0, warmup=0, active=1000)
            for _ in range(3):
                step()
                on_step()
            trained.set()
            threading.Event().wait()
        threading.Thread(target=train, daemon=True).start()
        trained.wait()
        """,
    )
    assert code == 0, words
    assert words.count("RecordingWarning") == 1
    assert "a window is lost" in words
    assert not list(tmp_path.iterdir())


def test_a_daemon_thread_that_ends_while_the_process_does_still_ends_its_window(tmp_path: Path) -> None:
    code, words = run(
        tmp_path,
        """
        import atexit
        import deepscope
        trained, may_end = threading.Event(), threading.Event()
        def train():
            on_step = deepscope.callback(FOLDER, root=ROOT, all_threads=False, wait=1, warmup=0, active=1000)
            for _ in range(3):
                step()
                on_step()
            trained.set()
            may_end.wait()
        def end():  # called behind what the recording has registered
            may_end.set()
            thread.join()
        atexit.register(end)
        thread = threading.Thread(target=train, daemon=True)
        thread.start()
        trained.wait()
        """,
    )
    assert code == 0, words
    (trace,) = tmp_path.glob("*.gz")
    assert "aten::addmm" in operators(trace)


@pytest.mark.parametrize("rest", ["while True: time.sleep(0.01)", "while True:\n                time.sleep(0.01)"])
def test_a_daemon_thread_that_still_runs_as_the_process_ends_ends_and_saves_its_window_first(
    tmp_path: Path, rest: str
) -> None:
    code, words = run(
        tmp_path,
        f"""
        import deepscope, time
        trained = threading.Event()
        def train():
            on_step = deepscope.callback(FOLDER, root=ROOT, all_threads=False, wait=0, warmup=0, active=1000)
            for _ in range(3):
                step()
                on_step()
            trained.set()
            {rest}
        threading.Thread(target=train, daemon=True).start()
        trained.wait()
        """,
    )
    (trace,) = tmp_path.glob("*.gz")
    assert (code, "Warning" in words) == (0, False), words
    assert load(trace)["deepscope"]["complete"] is False
    assert {"aten::addmm", "ProfilerStep#1", "ProfilerStep#2"} <= operators(trace)


def test_a_window_that_ends_with_its_thread_leaves_no_object_of_that_thread_behind(tmp_path: Path) -> None:
    code, words = run(
        tmp_path,
        CALLBACK,
        """
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        assert threading.enumerate()[0] is threading.main_thread()
        assert not any(isinstance(one, threading._DummyThread) for one in threading.enumerate())
        """,
    )
    assert (code, "Exception ignored" in words) == (0, False), words
    assert len(list(tmp_path.glob("*.gz"))) == 1
