"""Jobs that are asked while they run: the dormant recorder and its door."""

import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import deepscope
from deepscope.capture.actions import Action
from deepscope.capture.durations import seconds_of
from deepscope.capture.on_demand import client, inspection, jobs, places
from deepscope.capture.on_demand.dormant import Dormant
from deepscope.capture.on_demand.jobs import find_jobs, live_entries
from deepscope.capture.on_demand.messages import Answer, Request, decode_request, encode
from deepscope.capture.span import Span
from deepscope.capture.surroundings import optimizer_steps
from deepscope.capture.time_window import TimeWindow
from deepscope.errors import DoorError, OptionError


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """Doors of this test alone, in a folder whose name is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ds-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield Path(folder)


@pytest.fixture
def door(runtime, tmp_path):
    with deepscope.on_demand(tmp_path / "traces") as opened:
        yield opened


def visitor():
    (found,) = [one for one in live_entries() if one.entry.pid == os.getpid()]
    return found.visit()


def loop():
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], 0.1)

    def step():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    return step


def test_dormant_there_is_one_hook_and_one_waiting_thread(runtime, tmp_path):
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
        assert waiting.name == "deepscope-door"
        assert waiting.daemon
        frame = sys._current_frames()[waiting.ident]
        assert frame.f_code.co_name == "accept"  # it waits in the system, without a time-out
        assert opened._door._socket.gettimeout() is None
        assert len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks) == post_hooks + 1
        assert opened.dormant.count == 5
    waiting.join(5)
    assert set(threading.enumerate()) == threads
    assert len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks) == post_hooks
    assert list((runtime / "deepscope").iterdir()) == []
    assert not optimizer_steps._listeners


def test_after_a_window_all_hooks_are_gone(door):
    step, asking = loop(), visitor()
    tools = [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else []
    assert asking.ask(Request("start", "ab", step=3, steps=2)).accepted
    assert asking.ask(Request("commit", "ab")).accepted
    traced = set()
    for _ in range(8):
        step()
        traced.add(sys.gettrace() is not None or torch.autograd._profiler_enabled())
    assert traced == {False, True}
    answer = asking.ask(Request("look"))
    until = time.monotonic() + 60
    while answer.state == "saving" and time.monotonic() < until:
        answer = asking.ask(Request("look"))
    asking.leave()
    assert answer.state == "saved", answer
    assert sys.gettrace() is None
    assert not torch.autograd._profiler_enabled()
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(i) for i in range(6)] == tools
    profile = deepscope.load_profile(answer.traces[0], cache=False)
    assert [one.number for one in profile.steps] == [3, 4]


def window(asking, step, id_, first):
    """Two steps from `first` on, as `deepscope attach` has them recorded; what became of it."""
    assert asking.ask(Request("start", id_, step=first, steps=2)).accepted
    assert asking.ask(Request("commit", id_)).accepted
    for _ in range(6):
        step()
    until = time.monotonic() + 60
    answer = asking.ask(Request("look"))
    while answer.state not in {"saved", "failed"} and time.monotonic() < until:
        answer = asking.ask(Request("look"))
    return answer


def test_a_rank_that_was_not_chosen_says_so(runtime, tmp_path):
    with deepscope.on_demand(tmp_path / "traces", ranks=[1]):
        asking = visitor()
        answer = window(asking, loop(), "ab", 3)
        asking.leave()
    assert answer.state == "failed"
    assert answer.problem == "this rank does not record: the job was started with ranks=1"
    assert not (tmp_path / "traces").exists()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="counters of /proc")
def test_counters_of_the_whole_run_are_one_file_and_windows_leave_none_open(runtime, tmp_path):
    traces = tmp_path / "traces"
    open_files: list[int] = []
    with deepscope.on_demand(traces, counters="run", counter_interval=0.01):
        step = loop()
        for number in range(3):
            asking = visitor()
            assert window(asking, step, f"a{number}", 3 + 6 * number).state == "saved"
            asking.leave()
            opened = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
            open_files.append(sum(str(one).startswith("/proc/") for one in opened))
        assert not list(traces.glob("*.counters"))
    assert len(set(open_files)) == 1, open_files
    assert len(list(traces.glob("*.trace.json.gz"))) == 3
    assert len(list(traces.glob("*.counters"))) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]


def test_a_window_that_is_given_up_in_its_warm_up_is_forgotten(door, tmp_path):
    step, asking = loop(), visitor()
    assert asking.ask(Request("start", "ab", step=4, steps=2)).accepted
    assert asking.ask(Request("commit", "ab")).accepted
    for _ in range(3):
        step()
    assert asking.ask(Request("look")).state == "recording"
    asking.ask(Request("stop", "ab"))
    for _ in range(3):
        step()
    until = time.monotonic() + 30
    while (answer := asking.ask(Request("look"))).state == "saving" and time.monotonic() < until:
        pass
    asking.leave()
    assert answer.state == "failed"
    assert not (tmp_path / "traces").exists()
    assert not torch.autograd._profiler_enabled()


class Preempted(Exception):
    pass


def preempted(*_):
    raise Preempted


@pytest.mark.parametrize("moment", ["prepare", "export"])
def test_what_a_signals_handler_raises_reaches_the_program(door, monkeypatch, moment):
    from deepscope.capture.window import Window

    act = getattr(Window, moment)

    def beside_a_signal(self, *arguments):
        act(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Window, moment, beside_a_signal)
    before = signal.signal(signal.SIGTERM, preempted)
    step, asking = loop(), visitor()

    def several(count):
        for _ in range(count):
            step()

    try:
        assert asking.ask(Request("start", "ab", step=3, steps=2)).accepted
        assert asking.ask(Request("commit", "ab")).accepted
        with pytest.raises(Preempted):
            several(8)
        monkeypatch.undo()
        several(8)
    finally:
        signal.signal(signal.SIGTERM, before)
    until = time.monotonic() + 30
    while (answer := asking.ask(Request("look"))).state not in {"saved", "failed"} and time.monotonic() < until:
        pass
    asking.leave()
    assert answer.state == ("saved" if moment == "export" else "failed")


def test_a_program_that_ends_as_its_span_is_to_begin_does_not_wait_for_it(runtime, tmp_path, monkeypatch):
    asked = threading.Event()
    monkeypatch.setattr("deepscope.capture.on_demand.dormant.call_soon", lambda _: asked.set() or True)
    span = Span(tmp_path / "traces", 0.01, 60)
    span.__enter__()
    assert asked.wait(30)
    ending = threading.Thread(target=span.__exit__, args=(None, None, None), daemon=True)
    ending.start()
    ending.join(10)
    assert not ending.is_alive()
    assert span.traces == []
    assert not span._dormant.answer(Request("now", "ab", warmup=0)).accepted  # nothing begins any more


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_window_by_time_opens_reaches_the_program(door, monkeypatch, number):
    """The window opens in a call from C, which no exception leaves."""
    from deepscope.capture.window import Window

    prepare = Window.prepare

    def beside_a_signal(self):
        prepare(self)
        signal.raise_signal(number)

    monkeypatch.setattr(Window, "prepare", beside_a_signal)
    before = signal.signal(number, preempted)
    asking = visitor()

    def wait():
        until = time.monotonic() + 10
        while time.monotonic() < until:
            sum(range(100))

    threading.Timer(0.2, lambda: asking.ask(Request("now", "ab", warmup=0))).start()
    try:
        with pytest.raises(Preempted):
            wait()
    finally:
        signal.signal(number, before)
    monkeypatch.setattr(Window, "prepare", prepare)
    assert asking.ask(Request("look")).state == "recording"
    asking.leave()


class Impatient:
    """A lock for which nobody waits forever."""

    def __init__(self):
        self._lock = threading.Lock()
        self.locked = self._lock.locked

    def __enter__(self):
        assert self._lock.acquire(timeout=10), "a thread waits for itself"

    def __exit__(self, *_):
        self._lock.release()


def test_a_step_that_waits_while_the_end_is_asked_for_does_not_wait_for_itself(door):
    """The main thread gets the lock and, before its next instruction, the call that ends the window."""
    dormant, asking, is_held = door.dormant, visitor(), threading.Event()
    dormant._lock = Impatient()
    assert asking.ask(Request("now", "ab", warmup=0)).accepted
    until = time.monotonic() + 10
    while asking.ask(Request("look")).state != "recording" and time.monotonic() < until:
        pass

    def end():
        with dormant._lock:
            is_held.set()
            time.sleep(0.2)  # the step is at the lock by then
            dormant._stop(Request("stop", "ab"))

    ending = threading.Thread(target=end)
    ending.start()
    assert is_held.wait(10)
    door.step()
    ending.join()
    while (answer := asking.ask(Request("look"))).state == "saving" and time.monotonic() < until:
        pass
    asking.leave()
    assert answer.state == "saved"


def test_a_window_by_time_that_ended_by_itself_is_no_error(door):
    step, asking = loop(), visitor()
    assert asking.ask(Request("start", "ab", step=3)).accepted
    assert asking.ask(Request("commit", "ab")).accepted
    for _ in range(5):
        step()
    door.dormant.cut_short("another stage of the Trainer begins")
    ending = asking.ask(Request("end", "ab", step=9))
    assert ending.accepted, ending.problem
    assert asking.ask(Request("commit", "ab")).accepted
    until = time.monotonic() + 60
    while (answer := asking.ask(Request("look"))).state == "saving" and time.monotonic() < until:
        pass
    asking.leave()
    assert answer.state == "saved"
    assert answer.notes == ["another stage of the Trainer begins: the window ends after 2 steps"]


def test_the_door_is_the_users_own(door, runtime):
    folder = runtime / "deepscope"
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    modes = {path.suffix: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
    assert modes == {".sock": "0o600", ".json": "0o600"}
    assert deepscope.on_demand(runtime / "other") is door


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_somebody_elses_folder_or_entry_is_not_believed(runtime):
    folder = runtime / "deepscope"
    folder.mkdir()
    (folder / "1.json").write_text("{}")
    os.chown(folder, 12345, 12345)
    with pytest.raises(DoorError, match="not a folder of yours"):
        places.make_private(folder)
    assert list(places.entries(folder)) == []
    os.chown(folder, 0, 0)
    os.chown(folder / "1.json", 12345, 12345)
    assert places.read_private(folder / "1.json") is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_is_not_served(door, runtime):
    """The folder alone keeps others out; here it is open, and the door asks the system who is there."""
    for path in [*runtime.parents][:-1]:
        path.chmod(path.stat().st_mode | 0o011)
    runtime.chmod(0o777)
    (runtime / "deepscope").chmod(0o777)
    door._door.path.chmod(0o777)
    parent = os.fork()
    if parent == 0:
        code = 1
        try:
            os.setuid(12345)
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(str(door._door.path))
                other.settimeout(5)
                other.sendall(struct.pack("!I", 15) + b'{"kind":"look"}')
                code = 0 if other.recv(1) == b"" else 2
        except (BrokenPipeError, ConnectionResetError):
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 0


def test_what_dead_processes_left_is_removed_and_other_machines_are_left_alone(runtime):
    folder = runtime / "deepscope"
    folder.mkdir(mode=0o700)
    dead = places.Entry(pid=os.getpid(), door="x", started="1", here=places.here())
    elsewhere = places.Entry(pid=1, door="x", started="1", here="another")
    for name, entry in (("dead", dead), ("elsewhere", elsewhere)):
        places.write_private(
            folder / f"{name}.json", json.dumps({f: getattr(entry, f) for f in entry.__struct_fields__}).encode()
        )
    (folder / "dead.sock").touch()
    (folder / "junk.json").write_bytes(b"\xff{")
    assert live_entries() == []
    assert sorted(path.name for path in folder.iterdir()) == ["elsewhere.json", "junk.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has paths of any bytes")
@pytest.mark.parametrize("kind", ["socket", "files"])
def test_a_program_and_a_folder_whose_names_are_no_utf8_have_a_door(runtime, tmp_path, monkeypatch, kind):
    folder = tmp_path / os.fsdecode(b"tr\xe4ces")
    monkeypatch.setattr(sys, "argv", [os.fsdecode(b"/me/tr\xe4in.py")])
    with deepscope.on_demand(folder, door=kind):
        found = [one.entry for one in live_entries(traces=folder) if one.entry.pid == os.getpid()]
    assert [one.program for one in found] == ["/me/tr?in.py"]


def test_a_request_that_another_visitor_took_away_is_written_again(runtime, tmp_path):
    folder = tmp_path / "traces"
    with deepscope.on_demand(folder, door="files") as opened:
        (found,) = [one for one in live_entries(traces=folder) if one.entry.pid == os.getpid()]
        asking, other = found.visit(), found.visit()
        answers: list[Answer] = []
        waiting = threading.Thread(target=lambda: answers.append(asking.ask(Request("look"))), daemon=True)
        waiting.start()
        until = time.monotonic() + 20
        while not other._ask.exists() and time.monotonic() < until:
            pass
        other.leave()
        while waiting.is_alive() and time.monotonic() < until:
            opened.step()
            waiting.join(0.05)
    assert [one.pid for one in answers] == [os.getpid()]


def test_a_path_too_long_for_a_socket_is_passed_over(tmp_path, monkeypatch):
    deep = tmp_path / ("a" * 90)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setenv("XDG_CACHE_HOME", str(deep))
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setattr("tempfile.tempdir", None)
    path = places.place_for_socket(os.getpid())
    assert len(os.fsencode(path)) <= 100
    assert deep not in path.parents


def junk() -> st.SearchStrategy[bytes]:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
    kinds = st.sampled_from(["look", "start", "end", "commit", "now", "stop", "drop", "open"])
    names = ["id", "version", "step", "steps", "warmup", "options", "stack", "number", "first_number"]
    objects = st.builds(
        lambda kind, rest: json.dumps({"kind": kind, **rest}, default=str).encode(),
        kinds.filter(lambda kind: kind != "now"),
        st.dictionaries(st.sampled_from(names), values, max_size=5),
    )
    return objects | st.binary(max_size=64)


@settings(max_examples=300, deadline=None)
@given(words=junk())
def test_no_request_breaks_the_recorder(words):
    dormant = Dormant(lambda *_: pytest.fail("a recorder"), folder=Path("x"), options={}, facts=dict)
    dormant.count = 10**6
    try:
        request = decode_request(words)
    except DoorError:
        return
    answer = dormant.answer(request)
    assert len(encode(answer)) < 1 << 16
    dormant.step()


def test_junk_at_the_door_leaves_it_open_for_the_next(door):
    rng = random.Random(1)
    path = door._door.path
    pieces = [
        b"",
        b"\0",
        b"\xff" * 8,
        struct.pack("!I", 1 << 31),
        struct.pack("!I", 9) + b"{}",
        struct.pack("!I", 2) + b"[]",
    ]
    for _ in range(60):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(rng.choice(pieces) + rng.randbytes(rng.randrange(20)))
    asking = visitor()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            answer = asking.ask(Request("look"))
            break
        except client.GoneError:  # all places are taken by those who have not been shown out yet
            asking = visitor()
    assert answer.accepted
    asking.leave()


@pytest.mark.parametrize("option", ["on_trace_ready", "folder", "root", "include", "ranks", "name", "keep_last"])
def test_a_request_chooses_what_is_recorded_and_never_where(door, option):
    asking = visitor()
    answer = asking.ask(Request("start", "ab", step=9, steps=1, options={option: "/etc"}))
    asking.leave()
    assert not answer.accepted
    assert option in answer.problem


def test_options_that_are_wrong_are_told(door):
    asking = visitor()
    answer = asking.ask(Request("start", "ab", step=9, steps=1, options={"max_slowdown": 0.1}))
    asking.leave()
    assert "max_slowdown=0.1: must be a number above 1" in answer.problem


def test_steps_follow_the_optimizer_that_trains(door):
    first, second = loop(), loop()
    first(), second(), first(), second()
    assert door.dormant.count == 2  # the second one of a GAN
    del first
    second()
    assert door.dormant.count == 3  # the first one has gone
    third = loop()
    for _ in range(100):
        third()
    assert door.dormant.count == 3 + 100 - 63  # the second one rests
    door.step()
    third()
    assert door.dormant.count == 3 + 100 - 63 + 1  # the program counts by itself
    assert door.dormant.counted_by == "program"


def test_an_answer_that_comes_late_is_not_taken_for_the_next_ones(door, monkeypatch):
    """The process holds its interpreter's lock for longer than anybody waits, as torch does while it exports."""
    asking, look = visitor(), door.dormant._tell
    asking._socket.settimeout(0.2)

    def slow():
        time.sleep(0.6)
        return look()

    monkeypatch.setattr(door.dormant, "_tell", slow)
    with pytest.raises(client.SilentError):
        asking.ask(Request("look"))
    monkeypatch.setattr(door.dormant, "_tell", look)
    asking._socket.settimeout(5)
    answer = asking.ask(Request("commit", "ab"))
    asking.leave()
    assert not answer.accepted
    assert answer.problem == "there is no window of this id"


def test_durations_are_read():
    assert [seconds_of("time", word) for word in (60, "90s", "1.5m", "500ms", " 2 h ")] == [60, 90, 90, 0.5, 7200]
    for word in ("", "0", "-1", "1 day", "nan", "1e3", None, True, "s"):
        with pytest.raises(OptionError):
            seconds_of("time", word)


def test_a_window_by_time_follows_the_clock_and_ends_once():
    now = [0.0]
    window = TimeWindow(10, 5, clock=lambda: now[0], agree=lambda _key, step: 0)
    actions = []
    for step in range(40):
        actions.append(window.action(step))
        now[0] += 1
    assert [step for step, action in enumerate(actions) if action is Action.WARM_UP] == [11]
    assert [step for step, action in enumerate(actions) if action is Action.RECORD] == [12, 13, 14, 15, 16]
    assert window.is_over


def test_windows_by_time_agree_on_their_steps_over_ranks():
    agreed = {}
    ends = []
    for late in (0.0, 0.15):  # the second rank's first step ended later
        now = [late]
        window = TimeWindow(
            10, 5, clock=lambda now=now: now[0], agree=lambda key, step: agreed.setdefault(key.rsplit("/", 1)[1], step)
        )
        recorded = []
        for step in range(200):
            if window.action(step) is Action.RECORD:
                recorded.append(step)
            now[0] += 0.1 if step else 0.1 + late
        ends.append((recorded[0], recorded[-1]))
    assert ends[0] == ends[1]


def test_on_windows_no_process_is_asked_by_a_signal(monkeypatch):
    """Signal 0 is Ctrl-C there."""
    entry = places.Entry(pid=os.getpid(), door="files")
    monkeypatch.setattr(jobs, "started_at", lambda _: "")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal"))
    monkeypatch.setattr(os, "name", "nt")
    try:
        assert jobs._runs(entry)
        inspection._check_alive(os.getpid())
    finally:
        monkeypatch.undo()


def test_processes_are_recognized():
    own = inspection.inspect(os.getpid())
    assert own.version == sys.version_info[:2]
    assert not own.is_elsewhere
    assert inspection.ancestors(os.getpid())[:2] == [os.getpid(), os.getppid()]
    with pytest.raises(DoorError, match="there is no process"):
        inspection.inspect(2**22 + 1)


def test_a_job_lists_itself(door):
    own = [one for one in live_entries() if one.entry.pid == os.getpid()]  # others of this user's may wait, too
    found, problems = find_jobs(own)
    assert problems == []
    assert [job.pids for job in found] == [[os.getpid()]]


def test_steps_that_the_program_tells_count_once(door, tmp_path):
    from deepscope.capture.session import callback

    on_step = callback(tmp_path / "own", wait=0, warmup=0, active=1)
    for _ in range(5):
        on_step()
    on_step.close()
    assert door.dormant.count == 5
    with deepscope.profile(tmp_path / "own", wait=0, warmup=0, active=1) as prof:
        for _ in range(3):
            prof.step()
    assert door.dormant.count == 8
