"""What a trace's header states of the process that recorded it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from deepscope.capture.process_identity import arguments_digest


def digest_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    return arguments_digest()


def test_other_arguments_have_another_digest_and_none_can_be_read_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have been a kernel
    given = [(), ("--lr", "1"), ("--lr", "2"), ("--lr 1",), ("--token", "secret" * 40), ("\udcff",)]
    digests = [digest_of(monkeypatch, *arguments) for arguments in given]
    assert len(set(digests)) == len(given)
    assert {len(one) for one in digests} == {8}
    assert digest_of(monkeypatch, "--lr", "1") == digests[1]


def test_the_arguments_of_a_kernel_are_not_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = digest_of(monkeypatch)
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    assert digest_of(monkeypatch, "-f", "/run/kernel-1.json") == nothing
