"""Signals are held back, not lost; what their handlers raise is told from failures of ours."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deepscope.capture.process_hooks.open_recorders import guarded
from deepscope.capture.process_hooks.signals import comes_from_handler, held_back, put_off

posix = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no SIGUSR1 and SIGALRM on Windows")
Handle = Callable[[int, Any], None]


class PreemptedError(Exception):
    pass


class _Handler:
    def __call__(self, number: int, frame: object) -> None:
        self.raising(number, frame)

    def raising(self, number: int, frame: object) -> None:
        raise PreemptedError(number)


@pytest.fixture
def handle() -> Iterator[Callable[[int, Any], None]]:
    """Sets a handler for a signal, for as long as the test runs."""
    before: dict[int, Any] = {}

    def call(number: int, handler: Any) -> None:
        before.setdefault(number, signal.signal(number, handler))

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


def test_ctrl_c_arrives_at_the_end_of_the_block(handle: Handle) -> None:
    done: list[bool] = []

    def interrupted() -> None:
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    handle(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_ctrl_c_stays_ignored_and_other_threads_are_left_alone(handle: Handle) -> None:
    handle(signal.SIGINT, signal.SIG_IGN)
    with held_back():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    thread = threading.Thread(target=lambda: held_back().__enter__())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@posix
def test_every_signal_with_a_handler_waits_and_each_handler_is_called_whatever_others_raise(handle: Handle) -> None:
    called: list[int] = []

    def note(number: int, frame: object) -> None:
        called.append(number)
        raise PreemptedError(number)

    def interrupted() -> None:
        with held_back():
            for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM):
                signal.raise_signal(number)
            called.append(0)

    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM):
        handle(number, note)
    with pytest.raises(PreemptedError) as raised:
        interrupted()
    assert called == [0, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]
    assert comes_from_handler(raised.value)


@posix
def test_signals_that_are_put_off_are_told_and_not_handled(handle: Handle) -> None:
    handle(signal.SIGUSR1, _Handler())
    later: list[int] = []
    with put_off(later.append):
        signal.raise_signal(signal.SIGUSR1)
        with held_back():
            signal.raise_signal(signal.SIGUSR1)
    assert later == [signal.SIGUSR1] * 2
    with pytest.raises(PreemptedError):
        signal.raise_signal(signal.SIGUSR1)


@posix
@pytest.mark.parametrize(
    "handler",
    [_Handler(), _Handler().raising, functools.partial(_Handler.raising, _Handler()), lambda *_: _Handler()(*_)],
    ids=["object", "method", "partial", "function"],
)
def test_what_a_handler_raises_in_our_code_reaches_the_program(handle: Handle, handler: Any) -> None:
    handle(signal.SIGUSR1, handler)

    class Recorder:
        def _give_up(self) -> None:
            pytest.fail("the recording ends")

        @guarded
        def step(self) -> None:
            signal.raise_signal(signal.SIGUSR1)

    with pytest.raises(PreemptedError) as raised:
        Recorder().step()
    assert comes_from_handler(raised.value)


@posix
@pytest.mark.parametrize("takes", ["names", "any", "self"])
def test_a_handler_may_take_itself_off_before_it_raises(handle: Handle, takes: str) -> None:
    def once(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise PreemptedError(number)

    class Once:
        def handle(self, number: int, frame: Any) -> None:
            once(number, frame)

    handle(signal.SIGUSR1, {"names": once, "any": lambda *given: once(*given), "self": Once().handle}[takes])

    class Recorder:
        def _give_up(self) -> None:
            pytest.fail("the recording ends")

        @guarded
        def step(self) -> None:
            signal.raise_signal(signal.SIGUSR1)

    with pytest.raises(PreemptedError):
        Recorder().step()


@posix
def test_an_error_of_ours_is_no_handlers(handle: Handle) -> None:
    handle(signal.SIGUSR1, _Handler())
    with pytest.raises(ZeroDivisionError) as raised:
        _ = 1 / 0
    assert not comes_from_handler(raised.value)
