"""Hooks beside other people's hooks, failures and signals: nothing is stolen, raised or left behind."""

from __future__ import annotations


def test_a_recorder_that_starts_and_stops_without_a_recording_does_nothing_bad(run) -> None:
    run("""
    for _ in range(3):
        recorder.start()
        x = torch.ones(2) + 1
        record = recorder.stop()
        assert record.account.warnings == [], record.account
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


def test_taken_tool_ids_are_not_stolen_and_warned_of_once_a_recording(run) -> None:
    result = run(
        """
    if monitored:
        for number in (1, 2, 3, 4):
            sys.monitoring.use_tool_id(number, f"tool{number}")
    else:
        holder = lambda *_: None
        sys.settrace(holder)
    for _ in range(2):
        with Window() as window:
            x = torch.ones(2) + 1
        account = window.record.account
        assert account.backend is None and len(account.warnings) == 1, account
        assert window.record.entries == []
    if monitored:
        assert [sys.monitoring.get_tool(number) for number in (1, 2, 3, 4)] == ["tool1", "tool2", "tool3", "tool4"]
    else:
        assert sys.gettrace() is holder
        sys.settrace(None)
    """,
        warnings="always",
    )
    assert result.stderr.count("RecordingWarning: DeepScope: lines are not recorded") == 1


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


def test_a_failure_in_a_hook_ends_the_recording_and_not_the_run(run) -> None:
    result = run(
        """
    from deepscope.capture.lines import scopes
    def broken(self):
        raise ZeroDivisionError("planted")
    def work():
        y = torch.ones(2) + 1
        return y * 2
    whole = scopes.Slot.pair
    with Window() as window:
        x = torch.ones(2) + 1
        scopes.Slot.pair = broken
        work()
        z = x * 2
    scopes.Slot.pair = whole
    assert "planted" in window.record.account.warnings[0]
    assert hooks() == clean
    with Window() as window:
        work()
    assert window.record.account.warnings == []
    """,
        warnings="always",
    )
    assert result.stderr.count("RecordingWarning") == 1


def test_ctrl_c_in_the_window_reaches_the_user_and_leaves_nothing(run) -> None:
    run("""
    import signal
    from deepscope.capture.lines.recorder import _TAKEN_OUT as PART
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
        # Python itself takes a trace function out that Ctrl-C arrives in.
        assert window.record.account.warnings in ([[]] if monitored else [[], [PART]]), window.record.account
        assert hooks() == clean
        with Window() as window:
            x = torch.ones(2) + 1  # add
        assert window.lines_of("aten::add")[0] == [line_of("add")]
    """)


def test_what_the_handler_of_a_signal_raises_in_a_hook_reaches_the_user(run) -> None:
    """As torch's own handler does where a loader's worker dies; it may come between any two lines of a hook."""
    run("""
    import functools, signal
    from deepscope.capture.lines.recorder import _TAKEN_OUT
    class TimeIsUp(Exception): pass
    calls = []
    class Handler:
        def __call__(self, number, frame):
            calls.append(number)
            raise TimeIsUp
        def method(self, number, frame): self(number, frame)
    def spin():
        total = 0
        while True:
            total += 1
            total -= 1
            total = add(total)
    def add(total): return total + 1
    def work():
        return torch.ones(2) + 1  # add
    kinds = [Handler(), Handler().method, functools.partial(Handler.method, Handler()), lambda *_: Handler()(*_)]
    caught = 0
    with Window() as window:
        for turn in range(400):
            signal.signal(signal.SIGALRM, kinds[turn % 4])
            recorder.next_step()
            work()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0003 + turn * 0.00000037)
                spin()
            except TimeIsUp:
                caught += 1
        recorder.next_step()
        work()
    assert caught == len(calls) == 400, (caught, len(calls))
    assert window.record.account.warnings in ([], [_TAKEN_OUT]), window.record.account
    assert not monitored or not window.record.account.warnings
    assert hooks() == clean
    found = window.lines_of("aten::add")
    assert [lines[0] for lines in found] == [line_of("add")] * 401, found
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
