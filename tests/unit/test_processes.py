"""Work in processes of their own: answers, how far it is, and errors as what they are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepscope.errors import OptionError, TraceError
from deepscope.processes import HelperProcess, MessageError, ProcessEndedError

WORK = """
import os, sys, time
from deepscope.errors import OptionError, TraceError
from deepscope.processes import serve

def work(request, told):
    word = request.decode()
    if word == "option":
        raise OptionError("rank", 3, "no such rank")
    if word == "trace":
        raise TraceError("a.json: no")
    if word == "memory":
        raise MemoryError
    if word == "bug":
        raise KeyError(word)
    if word == "exit":
        os._exit(7)
    if word == "sleep":
        time.sleep(100)
    if word == "print":
        print("something that is no message", flush=True)
    for done in range(5):
        told(done, 4)
    return request[::-1]

serve(work)
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HelperProcess]:
    (tmp_path / "worked.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    started = HelperProcess.start("worked", is_quiet=True)
    assert started is not None
    yield started
    started.end()


def test_requests_are_answered_one_after_another(process: HelperProcess) -> None:
    told: list[tuple[int, int]] = []
    assert process.ask(b"abc", lambda done, total: told.append((done, total))) == b"cba"
    assert told[-1] == (4, 4)
    assert told == sorted(told)
    assert process.ask(b"") == b""
    assert process.ask(b"x" * (3 << 20)) == b"x" * (3 << 20)


def test_errors_come_back_as_what_they_are_and_the_process_goes_on(process: HelperProcess) -> None:
    with pytest.raises(OptionError) as caught:
        process.ask(b"option")
    assert (caught.value.option, caught.value.value, caught.value.problem) == ("rank", 3, "no such rank")
    with pytest.raises(TraceError, match=r"^a\.json: no$"):
        process.ask(b"trace")
    with pytest.raises(MemoryError):
        process.ask(b"memory")
    assert process.ask(b"abc") == b"cba"


@pytest.mark.parametrize(("word", "exit_code"), [(b"bug", 1), (b"exit", 7)])
def test_a_process_that_ends_says_how(process: HelperProcess, word: bytes, exit_code: int) -> None:
    with pytest.raises(ProcessEndedError) as caught:
        process.ask(word)
    assert caught.value.exit_code == exit_code
    with pytest.raises(ProcessEndedError):
        process.ask(b"abc")


def test_what_is_printed_is_not_taken_for_an_answer(process: HelperProcess) -> None:
    assert process.ask(b"print") == b"tnirp"


def test_one_that_is_waited_for_can_be_ended(process: HelperProcess) -> None:
    timer = threading.Timer(0.5, process.end)
    timer.start()
    with pytest.raises(ProcessEndedError):
        process.ask(b"sleep")
    timer.join()


@pytest.mark.parametrize("more", [[], [""], ["", "/no/such/folder"]])
def test_modules_of_the_working_folder_stand_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    if sys.version_info < (3, 11):
        return  # Python 3.10 has no such switch
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "json.py").write_text("raise SystemExit(9)")
    (tmp_path / "worked.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *more]))
    monkeypatch.chdir(tmp_path / "own")
    started = HelperProcess.start("worked")
    assert started is not None
    try:
        with pytest.raises(TraceError):
            started.ask(b"trace")
    finally:
        started.end()


def test_something_else_in_its_place_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho something else\ncat > /dev/null\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    started = HelperProcess.start("worked")
    assert started is not None
    with pytest.raises(MessageError):
        started.ask(b"abc")
    started.end()


@pytest.mark.parametrize("program", ["", "/no/such/python"])
def test_where_none_can_be_started_there_is_none(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "executable", program)
    assert HelperProcess.start("worked") is None
