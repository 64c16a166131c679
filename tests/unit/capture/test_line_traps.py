"""Each way in which line scopes can crash or lie, in a process of its own."""

from __future__ import annotations


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
    assert "another thread" in records[0].account.warnings[0]
    if not monitored:
        sys.settrace(None)
    for _ in range(3):
        with Window():
            x = torch.ones(2) + 1
    """,
        warnings="ignore",
    )


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
    assert {row.name for row in window.record.scopes if "json" in row.file} >= {"loads", name_of("JSONDecoder.decode")}
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
    assert window.record.account.threads == 4
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
    assert window.record.account.threads == 1
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
    assert window.record.account.warnings == [], window.record.account
    assert window.lines_of("aten::add")[0] == [line_of("add")]
    """)


def test_code_at_its_recursion_limit_runs_as_without_hooks(run) -> None:
    """A hook is called in the user's place, and needs room on the stack."""
    run("""
    def down(n):
        if n == 0:
            return torch.ones(2) + 1
        return down(n - 1)
    def deepest():
        n = 100
        while True:
            try:
                down(n)
            except RecursionError:
                return n - 1
            n += 1
    n, limit = deepest(), sys.getrecursionlimit()
    with Window() as window:
        for near in range(12):
            down(n - near)
    assert window.record.account.warnings == [], window.record.account
    assert len(window.lines_of("aten::add")) == 12
    assert sys.getrecursionlimit() == limit
    """)


def test_code_that_catches_its_own_recursion_error_leaks_no_hook(run) -> None:
    run(
        """
    def down():
        return down() + 1
    def caught():
        try:
            down()
        except RecursionError:
            return torch.ones(2) + 1
    limit = sys.getrecursionlimit()
    for _ in range(6):
        with Window() as window:
            caught()
            x = torch.ones(2) * 2  # mul
        assert hooks() == clean
        assert sys.getrecursionlimit() == limit
    if monitored:
        assert window.record.account.warnings == [], window.record.account
        assert window.lines_of("aten::mul")[0] == [line_of("mul")]
    else:  # Python itself takes a trace function out that raises
        assert "recorded in part" in window.record.account.warnings[0]
    with Window() as window:
        x = torch.ones(2) * 2  # next
    assert window.lines_of("aten::mul")[0] == [line_of("next")]
    """,
        warnings="ignore",
    )


def test_a_tool_that_comes_after_a_window_sees_all_code(run) -> None:
    """What one tool disables stays disabled for the next one that gets its id."""
    run("""
    import json.decoder
    def work():
        return json.loads("[1]")
    with Window() as window:
        work()
    if monitored:
        seen = set()
        events = sys.monitoring.events
        sys.monitoring.use_tool_id(4, "other")
        sys.monitoring.register_callback(4, events.PY_START, lambda code, _: seen.add(code.co_name))
        sys.monitoring.set_events(4, events.PY_START)
        work()
        sys.monitoring.set_events(4, 0)
        sys.monitoring.free_tool_id(4)
        assert {"work", "loads", "decode"} <= seen, seen
    """)


def test_threads_that_call_at_once_stop_no_lines(run) -> None:
    """Entries and scopes to use again are every thread's: one may be gone between the look and the grip."""
    run("""
    sys.setswitchinterval(1e-6)
    def leaf(x):
        return x
    def work():
        for _ in range(3000):
            leaf(1)
    for _ in range(3):
        with Window(all_threads=True) as window:
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads[:2]: thread.join()
        for thread in threads: thread.join()
        assert window.record.account.warnings == [], window.record.account
    """)
