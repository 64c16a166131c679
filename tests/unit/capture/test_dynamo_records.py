"""What dynamo tells of its compilations, of whichever version its records are."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from deepscope.capture.dynamo import PythonFrame, compiled_functions, recompilations


def forward(number: str, began_us: int, took_us: int, reason: str | None = None, name: str = "forward") -> Any:
    return SimpleNamespace(
        compile_id=number, is_forward=True, co_filename="net.py", co_firstlineno=6, co_name=name,
        start_time_us=began_us, duration_us=took_us, recompile_reason=reason,
    )  # fmt: skip


def backward(number: str, began_us: int, took_us: int) -> Any:
    return SimpleNamespace(
        compile_id=number, is_forward=False, co_filename=None, co_firstlineno=None, co_name=None,
        start_time_us=began_us, duration_us=took_us, recompile_reason=None,
    )  # fmt: skip


def keep(monkeypatch: pytest.MonkeyPatch, *records: Any) -> None:
    module = ModuleType("torch._dynamo.utils")
    module._compilation_metrics = records  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", module)


def test_a_function_has_all_its_compilations_and_those_of_its_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(
        monkeypatch,
        forward("0/0", 10, 7),
        backward("0/0", 20, 5),
        forward("1/0", 30, 100, name="other"),
        forward("0/1", 40, 3, "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16\nUser stack trace:"),
        backward("0/1", 50, 2),
    )
    other, function = compiled_functions(0)
    assert (other.function, other.times, other.time_ns, other.reason) == ("other", 1, 100_000, "")
    assert (function.file, function.line, function.function, function.times) == ("net.py", 6, "forward", 2)
    assert function.time_ns == 17_000
    assert function.reason == "tensor 'x' size mismatch at index 0. expected 8, actual 16"


def test_what_was_compiled_before_the_run_is_none_of_its(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "0/0: k == 1.0       # return x * k  # net.py:7 in f"
    keep(monkeypatch, forward("0/0", 10, 7), forward("0/1", 40, 3, reason))
    (function,) = compiled_functions(20_000)
    assert (function.times, function.time_ns, function.reason) == (1, 3000, "k == 1.0")
    (again,) = recompilations()
    assert (again.function, again.began_ns, again.reason) == (PythonFrame("net.py", 6, "forward"), 40_000, "k == 1.0")


def test_older_records_have_seconds_and_no_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(co_filename="net.py", co_firstlineno=6, co_name="forward", entire_frame_compile_time_s=0.25)
    keep(monkeypatch, old, old, SimpleNamespace(co_filename="net.py"))
    (function,) = compiled_functions(1)
    assert (function.times, function.time_ns) == (2, 500_000_000)
    assert recompilations() == []


def test_without_dynamo_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    assert compiled_functions(0) == []
