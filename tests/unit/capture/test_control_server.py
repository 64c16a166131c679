"""The control server of an idle recorder: who is let in, what is asked there, and which jobs have one."""

import json
import os
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import deepscope
import deepscope.cli.attach as attach_command
from deepscope.capture.on_demand import injection, jobs, protocol
from deepscope.capture.on_demand.idle_recorder import IdleRecorder
from deepscope.capture.on_demand.jobs import find_jobs, live_entries
from deepscope.capture.on_demand.protocol import ControlAnswer, ControlRequest, decode_request, encode
from deepscope.errors import ControlError


def test_the_door_is_the_users_own(control, runtime):
    folder = runtime / "deepscope"
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    modes = {path.suffix: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
    assert modes == {".sock": "0o600", ".json": "0o600"}
    assert deepscope.on_demand(runtime / "other") is control


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_somebody_elses_folder_or_entry_is_not_believed(runtime):
    folder = runtime / "deepscope"
    folder.mkdir()
    (folder / "1.json").write_text("{}")
    os.chown(folder, 12345, 12345)
    with pytest.raises(ControlError, match="not a folder of yours"):
        protocol.make_private(folder)
    assert list(protocol.entries(folder)) == []
    os.chown(folder, 0, 0)
    os.chown(folder / "1.json", 12345, 12345)
    assert protocol.read_private(folder / "1.json") is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_is_not_served(control, runtime):
    """The folder alone keeps others out; here it is open, and the control server asks the system who is there."""
    for path in [*runtime.parents][:-1]:
        path.chmod(path.stat().st_mode | 0o011)
    runtime.chmod(0o777)
    (runtime / "deepscope").chmod(0o777)
    control._control.path.chmod(0o777)
    parent = os.fork()
    if parent == 0:
        code = 1
        try:
            os.setuid(12345)
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(str(control._control.path))
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
    dead = protocol.ControlEntry(pid=os.getpid(), control="x", started="1", here=protocol.this_host())
    elsewhere = protocol.ControlEntry(pid=1, control="x", started="1", here="another")
    for name, entry in (("dead", dead), ("elsewhere", elsewhere)):
        protocol.write_private(
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
    with deepscope.on_demand(folder, control=kind):
        found = [one.entry for one in live_entries(traces=folder) if one.entry.pid == os.getpid()]
    assert [one.program for one in found] == ["/me/tr?in.py"]


def test_a_request_that_another_visitor_took_away_is_written_again(runtime, tmp_path):
    folder = tmp_path / "traces"
    with deepscope.on_demand(folder, control="files") as opened:
        (found,) = [one for one in live_entries(traces=folder) if one.entry.pid == os.getpid()]
        asking, other = found.connect(), found.connect()
        answers: list[ControlAnswer] = []
        waiting = threading.Thread(target=lambda: answers.append(asking.ask(ControlRequest("look"))), daemon=True)
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
    path = protocol.place_for_socket(os.getpid())
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
    idle = IdleRecorder(lambda *_: pytest.fail("a recorder"), folder=Path("x"), options={}, facts=dict)
    idle.count = 10**6
    try:
        request = decode_request(words)
    except ControlError:
        return
    answer = idle.answer(request)
    assert len(encode(answer)) < 1 << 16
    idle.step()


def test_junk_at_the_control_server_leaves_it_open_for_the_next(control, connect):
    rng = random.Random(1)
    path = control._control.path
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
    asking = connect()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            answer = asking.ask(ControlRequest("look"))
            break
        except jobs.GoneError:  # all places are taken by those who have not been shown out yet
            asking = connect()
    assert answer.accepted


@pytest.mark.parametrize("option", ["on_trace_ready", "folder", "root", "include", "ranks", "name", "keep_last"])
def test_a_request_chooses_what_is_recorded_and_never_where(control, connect, option):
    asking = connect()
    answer = asking.ask(ControlRequest("start", "ab", step=9, steps=1, options={option: "/etc"}))
    assert not answer.accepted
    assert option in answer.problem


def test_options_that_are_wrong_are_told(control, connect):
    asking = connect()
    answer = asking.ask(ControlRequest("start", "ab", step=9, steps=1, options={"max_slowdown": 0.1}))
    assert "max_slowdown=0.1: must be a number above 1" in answer.problem


def test_an_answer_that_comes_late_is_not_taken_for_the_next_ones(control, connect, monkeypatch):
    """The process holds its interpreter's lock for longer than anybody waits, as torch does while it exports."""
    asking, look, is_given_up = connect(), control.idle_recorder._tell, threading.Event()
    asking._socket.settimeout(0.2)

    def slow():
        assert is_given_up.wait(60)
        return look()

    monkeypatch.setattr(control.idle_recorder, "_tell", slow)
    with pytest.raises(jobs.SilentError):
        asking.ask(ControlRequest("look"))
    monkeypatch.setattr(control.idle_recorder, "_tell", look)
    is_given_up.set()
    asking._socket.settimeout(60)
    answer = asking.ask(ControlRequest("commit", "ab"))
    assert not answer.accepted
    assert answer.problem == "there is no window of this id"


def test_on_windows_no_process_is_asked_by_a_signal(monkeypatch):
    """Signal 0 is Ctrl-C there."""
    entry = protocol.ControlEntry(pid=os.getpid(), control="files")
    monkeypatch.setattr(jobs, "started_at", lambda _: "")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal"))
    monkeypatch.setattr(os, "name", "nt")
    try:
        assert jobs._runs(entry)
        injection._check_alive(os.getpid())
    finally:
        monkeypatch.undo()


def test_processes_are_recognized():
    own = injection.inspect(os.getpid())
    assert own.version == sys.version_info[:2]
    assert not own.is_elsewhere
    assert injection.ancestors(os.getpid())[:2] == [os.getpid(), os.getppid()]
    with pytest.raises(ControlError, match="there is no process"):
        injection.inspect(2**22 + 1)


def test_a_job_lists_itself(control):
    own = [one for one in live_entries() if one.entry.pid == os.getpid()]  # others of this user's may wait, too
    found, problems = find_jobs(own)
    assert problems == []
    assert [job.pids for job in found] == [[os.getpid()]]


def test_a_rank_that_has_not_responded_is_named(control, monkeypatch):
    class Silent:
        entry = SimpleNamespace(control="socket", rank=3, world_size=4, pid=4711)

        def connect(self):
            raise ControlError("process 4711 has not responded within 2 s")

    own = [one for one in live_entries() if one.entry.pid == os.getpid()]
    found, problems = find_jobs([Silent(), *own])
    assert len(found) == 1
    assert problems == ["rank 3: process 4711 has not responded within 2 s"]
    monkeypatch.setattr(attach_command, "live_entries", lambda **_: [Silent(), *own])
    monkeypatch.setattr(attach_command, "_recorded", lambda *_, **__: [])
    result = CliRunner().invoke(attach_command.attach, [str(os.getpid())])
    assert "deepscope: rank 3: process 4711 has not responded within 2 s" in result.stderr


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc is Linux's")
def test_a_client_that_may_not_enter_leaves_no_socket_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "somebodys.sock"
    path.touch()
    monkeypatch.setattr(jobs, "is_own", lambda _: False)
    before = open_files()
    with pytest.raises(ControlError, match="is not yours") as refused:
        jobs.SocketClient(protocol.ControlEntry(pid=1, control=str(path)))
    assert open_files() == before
    assert refused.tb is not None  # it holds the client
