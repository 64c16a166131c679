"""The functions of torch that are wrapped while a run is watched: who is told, and that nothing is left of it."""

from __future__ import annotations

import io
import os
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from deepscope.capture.notices import RecordingWarning
from deepscope.capture.process_hooks.run_events import listen

_ITERATOR = torch.utils.data.dataloader._BaseDataLoaderIter
_BEFORE = DataLoader.__iter__, _ITERATOR.__next__, torch.save, torch.serialization.save


def in_place() -> tuple[Any, ...]:
    return DataLoader.__iter__, _ITERATOR.__next__, torch.save, torch.serialization.save


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert in_place() == _BEFORE


class Noted:
    """What was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        def tell(*_: Any) -> None:
            self.told.append(name)
            if self.fails and name != "give_up":
                raise ValueError("a mistake of ours")

        return tell


def make_pass() -> list[Any]:
    return list(DataLoader([1, 2], batch_size=None))


PASS = ["opening", "opened", "fetching", "fetched", "fetching", "fetched", "fetching", "exhausted"]


def test_a_pass_and_a_checkpoint_are_told_and_torch_has_its_functions_again() -> None:
    noted = Noted()
    leave = listen(noted)
    assert not set(in_place()) & set(_BEFORE)
    assert make_pass() == [1, 2]
    torch.save(1, io.BytesIO())
    leave()
    assert noted.told == [*PASS, "saving", "saved"]
    assert in_place() == _BEFORE
    make_pass()
    assert len(noted.told) == len(PASS) + 2


def test_functions_are_wrapped_once_however_many_listen() -> None:
    first, second = Noted(), Noted()
    leave_first = listen(first)
    wrapped = in_place()
    leave_second = listen(second)
    assert in_place() == wrapped
    make_pass()
    leave_first()
    assert in_place() == wrapped
    make_pass()
    leave_second()
    leave_second()
    assert (len(first.told), len(second.told)) == (len(PASS), 2 * len(PASS))


def test_who_is_forgotten_listens_no_more() -> None:
    listen(Noted())
    assert in_place() == _BEFORE


def test_an_exception_of_the_program_is_told_and_reaches_it() -> None:
    class Broken(list):
        def __getitem__(self, _: Any) -> Any:
            raise LookupError("gone")

    noted = Noted()
    leave = listen(noted)
    with pytest.raises(LookupError, match="gone"):
        next(iter(DataLoader(Broken([1]), batch_size=None)))
    with pytest.raises((AttributeError, pickle.PicklingError)):  # the latter from Python 3.14 on
        torch.save(lambda: None, io.BytesIO())
    leave()
    assert noted.told == ["opening", "opened", "fetching", "failed", "saving", "saved"]


def test_a_mistake_of_ours_costs_a_warning_and_nothing_else() -> None:
    noted = Noted()
    noted.fails = True
    leave = listen(noted)
    with pytest.warns(RecordingWarning, match="what the time of the run went to: ValueError: a mistake of ours"):
        assert make_pass() == [1, 2]
    leave()
    assert noted.told == ["opening", "give_up"]


def test_what_others_wrap_around_ours_stays_and_ours_tells_nobody() -> None:
    first = Noted()
    leave = listen(first)
    ours = DataLoader.__iter__
    calls = []

    def theirs(self: Any) -> Any:
        calls.append(self)
        return ours(self)

    DataLoader.__iter__ = theirs
    try:
        leave()
        assert DataLoader.__iter__ is theirs
        assert make_pass() == [1, 2]
        assert len(calls) == 1
        second = Noted()
        leave = listen(second)
        make_pass()
        assert second.told == PASS  # not twice
        assert len(calls) == 2
    finally:
        DataLoader.__iter__ = ours
        leave()
    assert first.told == []


def test_functions_can_be_pickled_while_they_are_wrapped() -> None:
    leave = listen(Noted())
    content = pickle.dumps(torch.save)
    leave()
    assert pickle.loads(content) is torch.save


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_tells_nobody_and_has_torchs_functions() -> None:
    noted = Noted()
    leave = listen(noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest has threads
        child = os.fork()
    if not child:
        is_clean = in_place() == _BEFORE
        make_pass()
        os._exit(0 if is_clean and not noted.told else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    make_pass()
    leave()
    assert noted.told == PASS
