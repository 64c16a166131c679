"""Modules, budgets, code facts and names of the line recorder."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from deepscope.capture.lines import Limits, UserCode, parse_name
from deepscope.capture.lines.bytecode import opens_at_start
from deepscope.trace.format.span_names import ScopeEvent, late_name, line_name, module_name
from line_truth import Recording, Span, recording

HERE = Path(__file__)


def line_of(mark: str) -> int:
    return next(n for n, text in enumerate(HERE.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))


def record(folder: Path, code: Any, **options: Any) -> Recording:
    limits = Limits(max_slowdown=float("inf"), max_entries=1 << 40)  # however busy the machine is, nothing is lowered
    with recording(folder, UserCode.find(root=HERE.parent), limits=limits, **options) as done:
        code()
    return done[0]


def modules_of(found: Recording, operator: str) -> list[list[str | None]]:
    spans = [span for span in found.spans if span.name == operator]
    return [[up.module for up in span.above() if up.module is not None] for span in spans]


@pytest.mark.parametrize("name", ["@ds:", "@ds:x", "@dl:1", "@dl::5", "@dl:1,:5", "aten::add", "", "@dx:1"])
def test_other_names_are_no_scopes(name: str) -> None:
    assert parse_name(name) is None


def test_names_read_back_as_what_they_were_made_of() -> None:
    assert parse_name(line_name(17)) == ScopeEvent((17,))
    assert parse_name(module_name(3)) == ScopeEvent((3,))
    assert parse_name(late_name([4, 5], 1843)) == ScopeEvent((4, 5), 1843)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is not the back end of this Python")
@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("f = lambda x: x + 1", True),
        ("def f(x): return x", True),
        ("def f(x):\n    return x", False),
        ("f = (a for a in b)", True),
        ("@d\ndef f(x):\n    return x", False),
        ("def f(x):\n    def g(): return x\n    return g", False),
        ("async def f(x): return x", True),
        ("def f(x):\n    yield x", False),
    ],
)
def test_a_body_that_begins_on_the_line_of_its_function_is_told(source: str, answer: bool) -> None:
    module = compile(source, "f.py", "exec")
    code = next(constant for constant in module.co_consts if hasattr(constant, "co_code"))
    assert opens_at_start(code) is answer


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:  # inner
        return x.sin()


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Inner()
        self.rest = nn.Sequential(Inner(), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(self.first(x)).cos()

    def step(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(x)


def test_modules_have_their_dotted_paths_and_the_place_of_their_forward(tmp_path: Path) -> None:
    model = Outer()
    found = record(tmp_path, lambda: model(torch.ones(2)))
    assert modules_of(found, "aten::sin") == [["first", ""], ["rest.0", "rest", ""]]
    assert modules_of(found, "aten::relu") == [["rest.1", "rest", ""]]
    rows = {row.path: row for row in found.record.scopes if row.kind == 1}
    assert rows["first"].name == "Inner"
    assert (rows["first"].file, rows["first"].line) == (str(HERE), line_of("inner"))
    assert rows["rest.1"].python_module == "torch.nn.modules.activation"
    assert rows["rest.1"].file == torch.nn.modules.activation.__file__


def test_a_method_of_a_model_that_is_never_called_itself_is_the_root(tmp_path: Path) -> None:
    """Lightning calls `training_step` in this way."""
    model = Outer()
    found = record(tmp_path, lambda: model.step(torch.ones(2)))
    assert modules_of(found, "aten::sin") == [["rest.0", "rest"]]


def test_modules_are_recorded_without_lines_and_lines_without_modules(tmp_path: Path) -> None:
    model = Outer()
    only_modules = record(tmp_path, lambda: model(torch.ones(2)), lines=False)
    assert {row.kind for row in only_modules.record.scopes} == {1}
    only_lines = record(tmp_path, lambda: model(torch.ones(2)), modules=False)
    assert {row.kind for row in only_lines.record.scopes} == {0}


def test_modules_made_for_one_call_are_not_kept_and_share_a_scope(tmp_path: Path) -> None:
    alive: list[int] = []

    def code() -> None:
        for _ in range(20):
            nn.Dropout(0.5)(torch.ones(2))
        gc.collect()
        alive.append(sum(type(thing) is nn.Dropout for thing in gc.get_objects()))

    found = record(tmp_path, code)
    assert alive == [0]
    assert [row.name for row in found.record.scopes if row.kind == 1] == ["Dropout"]
    assert sum(span.module is not None for span in found.spans) == 20


def test_an_exception_through_modules_closes_them(tmp_path: Path) -> None:
    def code() -> None:
        with pytest.raises(RuntimeError):
            nn.Sequential(Inner(), nn.Linear(3, 3))(torch.ones(2))
        torch.ones(2).tan()

    assert modules_of(record(tmp_path, code), "aten::tan") == [[]]


def test_no_module_hook_of_torchs_is_touched(tmp_path: Path) -> None:
    from torch.nn.modules import module

    seen: list[int] = []

    def code() -> None:
        tables = [table for name, table in vars(module).items() if name.startswith("_global") and "hooks" in name]
        seen.append(sum(len(table) for table in tables if hasattr(table, "__len__")))

    record(tmp_path, code)
    assert seen == [0]


BUDGET = 200
RUNS = 6_000


def callee(x: int) -> int:
    return x * 2  # callee


def sometimes(index: int, x: torch.Tensor) -> torch.Tensor | None:
    if index % 500 == 499:
        return x.sin()  # rare callee
    return None


def test_lines_without_operators_stop_at_their_budget_and_the_count_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is, no run counts as long enough for an operator.
    monkeypatch.setattr("deepscope.capture.lines.overhead_budget.OPERATOR_OPENINGS", 1e12)

    def code() -> None:
        total = 0
        for index in range(RUNS):
            total += index  # cheap

    found = record(tmp_path, code, budget=BUDGET)
    number = next(n for n, row in enumerate(found.record.scopes) if row.line == line_of("cheap"))
    missed = dict(found.record.account.over_budget)
    assert found.record.entries[number] + missed[number] == RUNS
    assert BUDGET <= found.record.entries[number] < 2 * BUDGET
    in_trace = Counter(span.line for span in found.spans)
    assert in_trace[(str(HERE), line_of("cheap"))] == found.record.entries[number]


def test_an_operator_past_the_budget_stands_at_its_line(tmp_path: Path) -> None:
    x = torch.ones(2)

    def code() -> None:
        for index in range(RUNS):
            y = x.cos() if index % 500 == 499 else None  # rare
        for index in range(RUNS):
            sometimes(index, x)  # rare call
        for _ in range(RUNS):
            y = x.neg()  # often
        del y

    def lines(name: str) -> list[list[int]]:
        return [[line for _, line in span.lines][:2] for span in found.spans if span.name == name]

    def off(spans: list[list[int]], *expected: str) -> int:
        return sum(lines[: len(expected)] != [line_of(mark) for mark in expected] for lines in spans)

    found = record(tmp_path, code, budget=BUDGET)
    assert len(lines("aten::cos")) == len(lines("aten::sin")) == RUNS // 500
    # A late span finds its place by two clocks that are read one after the other; an interrupt just there spoils it.
    assert off(lines("aten::cos"), "rare") <= 1
    assert off(lines("aten::sin"), "rare callee", "rare call") <= 1
    assert off(lines("aten::neg"), "often") <= RUNS // 100


def test_the_cost_of_an_entry_is_stated(tmp_path: Path) -> None:
    def code() -> None:
        for index in range(400):
            callee(index)

    cost = record(tmp_path, code).record.account.cost_ns
    assert 50 < cost < 100_000


def test_the_account_counts_what_is_in_the_trace(tmp_path: Path) -> None:
    def code() -> None:
        for index in range(50):
            callee(index)  # call

    found = record(tmp_path, code)
    scopes: list[Span] = [span for span in found.spans if span.line is not None or span.module is not None]
    assert found.record.account.entries == len(scopes) == sum(found.record.entries)
    assert found.record.account.over_budget == []
    assert found.record.files == [str(HERE), *[name for name in found.record.files if name != str(HERE)]]


def test_parameters_are_counted_once_and_those_of_modules_within_too(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
            self.head = nn.Linear(3, 4, bias=False)
            self.head.weight = self.inner[0].weight
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.head(x)

    model = Tied()
    found = record(tmp_path, lambda: model(torch.ones(2, 3))).record
    counted = {found.scopes[row.scope].path: (row.own, row.total) for row in found.parameters}
    assert counted == {"": (2, 18), "inner": (0, 16), "inner.0": (16, 16), "head": (12, 12)}


def test_a_module_whose_parameters_have_no_size_yet_is_left_out(tmp_path: Path) -> None:
    class Odd(nn.Linear):
        def parameters(self, recurse: bool = True) -> Any:
            raise RuntimeError("not here")

    odd, plain = Odd(2, 2), nn.Linear(2, 2)
    found = record(tmp_path, lambda: plain(odd(torch.ones(2)))).record
    assert [(found.scopes[row.scope].name, row.total) for row in found.parameters] == [("Linear", 6)]
