"""Lines of the installed packages whose modules run: found, exact, and without a mark on the user's lines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
import torch._dynamo
from torch.profiler import ProfilerActivity, profile

from deepscope.capture.lines import Limits, LineRecorder, UserCode
from deepscope.capture.lines.recorded_code import Libraries, step_code
from deepscope.capture.lines.stacks import Stacks
from hot_library import HotLibrary, hot_library
from line_truth import WITNESS, Recording, Span, Witness, read_spans, recording

FREE = Limits(max_slowdown=float("inf"), max_entries=1 << 40)
numbers = count()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[HotLibrary]:
    with hot_library(tmp_path, f"hotlib{next(numbers)}") as found:
        yield found


def record(
    library: HotLibrary, model: torch.nn.Module, optimizer: torch.optim.Optimizer, folder: Path, *, steps: int = 12,
    witness: str = "", **options: object,
) -> Recording:  # fmt: skip
    """Some training steps, with the lines of libraries unless the options say otherwise."""
    code = options.pop("code", None) or UserCode(library.root)
    x = torch.randn(2, 8, requires_grad=True)
    with recording(folder, code, **{"libraries": True, "limits": FREE, **options}) as done:  # type: ignore[arg-type]
        for _ in range(steps):
            if witness:
                with Witness(witness):
                    library.train.step(model, optimizer, x)
            else:
                library.train.step(model, optimizer, x)
    return done[0]


def trained(library: HotLibrary, folder: Path, **options: object) -> Recording:
    model = library.blocks.Stack()
    return record(library, model, torch.optim.SGD(model.parameters(), lr=0.1), folder, **options)  # type: ignore[arg-type]


def in_library(library: HotLibrary, span: Span) -> list[tuple[str, int]]:
    """The library's lines that an operator stands in, innermost first, inside the user's."""
    users = str(library.root)
    found = []
    for file, line in span.lines:
        if file.startswith(users):
            break
        found.append((file, line))
    return found


@pytest.mark.parametrize("module", ["blocks", "helpers"])
def test_each_operator_stands_in_the_line_that_the_witness_saw_or_in_none_of_that_function(
    library: HotLibrary, tmp_path: Path, module: str
) -> None:
    file = library.file(module)
    found = trained(library, tmp_path, witness=file)
    seen = [span for span in found.witnessed if span.name != f"{WITNESS}0"]
    wrong, exact = [], 0
    for span in seen:
        line = int(span.name[len(WITNESS) :])
        innermost = next((one for one in span.lines if one[0] == file), None)
        exact += innermost == (file, line)
        if span.lines[0] != (file, line) and span.lines[0][0] == file:
            wrong.append((line, span.lines[0]))
    assert wrong == []
    assert len(seen) > 100
    assert exact > 0.9 * len(seen)
    assert found.record.account.warnings == []


def test_lines_stand_within_each_other_as_they_called(library: HotLibrary, tmp_path: Path) -> None:
    found = trained(library, tmp_path)
    tanh = [span for span in found.operators if span.name == "aten::tanh"]
    assert len(tanh) == 12 * 4
    expected = [
        (library.file("helpers"), library.line_of("helpers", "return y.tanh()")),
        (library.file("blocks"), library.line_of("blocks", "x = helpers.activate(x, scale)")),
        (library.file("blocks"), library.line_of("blocks", "x = block(x)")),
    ]
    # In its first frames the module's package is not known yet: torch calls it before anything of it has run.
    assert [in_library(library, span) for span in tanh].count(expected) >= len(tanh) - 1


def test_generators_exceptions_and_recursion_stand_at_their_lines(library: HotLibrary, tmp_path: Path) -> None:
    found = trained(library, tmp_path)
    for operator, statement in (
        ("aten::div", "half = x / 2"),
        ("aten::relu", "yield half.relu()"),
        ("aten::sum", "x.sum()"),
        ("aten::sigmoid", "return y.sigmoid()"),
    ):
        spans = [one for one in found.operators if one.name == operator and in_library(library, one)]
        wanted = (library.file("helpers"), library.line_of("helpers", statement))
        assert {in_library(library, one)[0] for one in spans} == {wanted}, operator
    deepest = max(
        (in_library(library, one) for one in found.operators if one.name == "aten::sigmoid"),
        key=lambda lines: len(lines),
    )
    recursive = (library.file("helpers"), library.line_of("helpers", "y = power(x, n - 1)"))
    assert deepest.count(recursive) == 2


def test_the_users_lines_are_those_of_a_recording_without(library: HotLibrary, tmp_path: Path) -> None:
    def users(found: Recording) -> list[tuple[str, tuple[str, int] | None]]:
        root = str(library.root)
        return [
            (span.name, next((line for line in span.lines if line[0].startswith(root)), None))
            for span in found.operators
        ]

    def entered(found: Recording) -> dict[tuple[str, int], int]:
        rows = zip(found.record.scopes, found.record.entries, strict=True)
        return {(row.file, row.line): runs for row, runs in rows if row.kind == 0 and not row.library}

    with_lines = trained(library, tmp_path)
    without = trained(library, tmp_path, libraries=False)
    assert any(row.library for row in with_lines.record.scopes)
    assert not any(row.library for row in without.record.scopes)
    assert users(with_lines) == users(without)
    root = str(library.root)
    assert {k: v for k, v in entered(with_lines).items() if k[0].startswith(root)} == {
        k: v for k, v in entered(without).items() if k[0].startswith(root)
    }


def test_code_of_the_users_that_a_library_calls_is_the_users(library: HotLibrary, tmp_path: Path) -> None:
    found = trained(library, tmp_path)
    doubled = str(library.root / f"train_{library.name}.py")
    rows = {(row.file, row.library) for row in found.record.scopes if row.kind == 0}
    assert (doubled, False) in rows
    assert (doubled, True) not in rows
    assert found.record.files == [file for file in found.record.files if not file.startswith(str(library.installed))]
    assert {library.file("blocks"), library.file("helpers")} <= set(found.record.library_files)


def test_functions_without_operators_are_left_alone(library: HotLibrary, tmp_path: Path) -> None:
    """The clock decides whether a line holds operators: one of three recordings may have been disturbed."""
    silent, held = library.line_of("helpers", 'if "c" in names:'), library.line_of("helpers", "return y.tanh()")
    silent_runs = []
    for _ in range(3):
        found = trained(library, tmp_path, steps=20)
        runs = {
            (row.name, row.line): entries
            for row, entries in zip(found.record.scopes, found.record.entries, strict=True)
            if row.library
        }
        silent_runs.append(runs["check", silent])
        assert ("check", silent - 1) not in runs, "a line that asks no value anything is not even tried"
        assert runs["activate", held] >= 79
    assert sorted(silent_runs)[1] < 20, "of eighty"


def test_the_package_of_an_optimizer_is_found_by_its_step(library: HotLibrary, tmp_path: Path) -> None:
    assert step_code() is not None
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    model.forward = lambda x, _: torch.nn.Sequential.forward(model, x)  # type: ignore[method-assign, assignment]
    found = record(library, model, library.optimizer.Plain(model.parameters()), tmp_path)
    assert found.record.account.libraries == ["torch.optim", library.name]
    updates = [span for span in found.spans if span.name == "aten::sub_"]
    wanted = (library.file("optimizer"), library.line_of("optimizer", "p.sub_(p.grad, alpha=0.01)"))
    assert sum(span.lines[0] == wanted for span in updates) >= 0.9 * len(updates) > 10


def test_torchs_optimizers_are_recorded_and_torchs_modules_are_not(library: HotLibrary, tmp_path: Path) -> None:
    found = trained(library, tmp_path)
    torch_files = {row.file for row in found.record.scopes if row.library and f"{'/torch/'}" in row.file}
    assert any(file.endswith("torch/optim/sgd.py") for file in torch_files)
    assert all("/torch/optim/" in file for file in torch_files)


def test_a_package_is_open_from_the_start_of_the_next_window(library: HotLibrary, tmp_path: Path) -> None:
    code = UserCode(library.root)
    libraries = Libraries(code)
    assert not libraries.owns(library.file("helpers"))
    opened = []
    libraries.on_open = lambda: opened.append(1)
    libraries.meet(library.blocks.Block, "forward")
    libraries.meet(library.blocks.Stack, "forward")
    assert opened == [1]
    assert libraries.owns(library.file("helpers"))
    assert not libraries.owns(str(library.root / "train.py"))
    assert not libraries.owns(threading.__file__)


def test_what_the_user_includes_is_the_users_and_what_is_excluded_is_nobodys(
    library: HotLibrary, tmp_path: Path
) -> None:
    included = trained(library, tmp_path, code=UserCode(library.root, include=[f"{library.name}.helpers"]))
    rows = {(row.file, row.library) for row in included.record.scopes if row.kind == 0}
    assert (library.file("helpers"), False) in rows
    assert (library.file("blocks"), True) in rows
    assert (library.file("helpers"), True) not in rows
    excluded = trained(library, tmp_path, code=UserCode(library.root, exclude=[f"{library.name}.helpers"]))
    files = {row.file for row in excluded.record.scopes if row.kind == 0}
    assert library.file("helpers") not in files
    assert library.file("blocks") in files


def test_a_thread_that_a_library_starts_has_its_lines(library: HotLibrary, tmp_path: Path) -> None:
    model = library.blocks.Threaded()
    x = torch.randn(2, 8)
    with recording(tmp_path, UserCode(library.root), libraries=True, limits=FREE) as done:
        for _ in range(12):
            model(x)
    if not done[0].record.account.unrecorded_threads:
        wanted = (library.file("helpers"), library.line_of("helpers", "return y.tanh()"))
        tanh = [span for span in done[0].operators if span.name == "aten::tanh"]
        assert sum(wanted in span.lines for span in tanh) >= 11
    assert done[0].record.account.warnings == []


@pytest.mark.parametrize("limits", [Limits(max_slowdown=float("inf"), max_entries=1_000), Limits(max_slowdown=1.0001)])
def test_lines_of_libraries_give_way_before_any_of_the_users(
    library: HotLibrary, tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepscope.capture.lines.overhead_budget._GRACE_NS", 1_000_000)
    monkeypatch.setattr("deepscope.capture.lines.overhead_budget._EVERY", 256)
    found = trained(library, tmp_path, limits=limits, steps=30)
    account = found.record.account
    assert account.libraries_ended or account.lowered
    library_first = [number for number, _ in account.lowered if not found.record.scopes[number].library]
    assert not library_first or account.libraries_ended
    assert account.warnings == []


def test_nothing_is_left_behind(library: HotLibrary, tmp_path: Path) -> None:
    import sys

    trained(library, tmp_path, steps=2)
    assert sys.gettrace() is None
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        assert all(monitoring.get_tool(number) != "deepscope" for number in range(6))


def runs_of(found: Recording, library: HotLibrary) -> dict[tuple[str, int], int]:
    """Scopes opened, by file and line of the library."""
    rows = zip(found.record.scopes, found.record.entries, strict=True)
    return {
        (row.file, row.line): runs for row, runs in rows if row.library and row.file.startswith(str(library.installed))
    }


def two_windows(library: HotLibrary, folder: Path, first_steps: int, second_steps: int) -> list[Recording]:
    """Windows of one recorder, one after the other."""
    model = library.blocks.Stack()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(2, 8, requires_grad=True)
    recorder = LineRecorder(UserCode(library.root), libraries=True, limits=FREE)
    found = []
    for steps in (first_steps, second_steps):
        with profile(activities=[ProfilerActivity.CPU]) as torch_profiler:
            recorder.start()
            for _ in range(steps):
                library.train.step(model, optimizer, x)
            record = recorder.stop()
        path = folder / f"{len(found)}.json"
        torch_profiler.export_chrome_trace(str(path))
        found.append(Recording(read_spans(path, record), record))
    return found


def test_what_a_window_found_out_the_next_one_knows_from_its_first_step(library: HotLibrary, tmp_path: Path) -> None:
    _, second = two_windows(library, tmp_path, 12, 1)
    runs = runs_of(second, library)
    assert runs[library.file("helpers"), library.line_of("helpers", "return y.tanh()")] == 4
    assert runs[library.file("blocks"), library.line_of("blocks", "x = self.fc(x)")] == 4
    assert (library.file("helpers"), library.line_of("helpers", 'if "c" in names:')) not in runs
    tanh = [span for span in second.operators if span.name == "aten::tanh"]
    assert {in_library(library, span)[0][1] for span in tanh} == {library.line_of("helpers", "return y.tanh()")}
    assert second.record.account.lowered == []


def test_a_second_window_has_every_operator_where_the_first_had_it(library: HotLibrary, tmp_path: Path) -> None:
    first, second = two_windows(library, tmp_path, 12, 12)

    def places(found: Recording, operator: str) -> list[tuple[str, int]]:
        return [in_library(library, span)[0] for span in found.operators if span.name == operator][-48:]

    for operator in ("aten::tanh", "aten::sigmoid", "aten::relu", "aten::div", "aten::neg"):
        assert places(first, operator) == places(second, operator), operator


def test_a_line_that_begins_to_hold_operators_in_a_later_branch_is_recorded(
    library: HotLibrary, tmp_path: Path
) -> None:
    """The lines around it are silent by then, and Python 3.12 and later sends no events of them any more."""
    x = torch.randn(2, 8, requires_grad=True)
    with recording(tmp_path, UserCode(library.root), libraries=True, limits=FREE) as done:
        model = library.blocks.Late()
        for step in range(60):
            model(x, step >= 40)
    erf = [span for span in done[0].operators if span.name == "aten::erf"]
    assert len(erf) == 20
    wanted = (library.file("blocks"), library.line_of("blocks", "x = x.erf()"))
    assert [in_library(library, span)[:1] for span in erf[1:]] == [[wanted]] * 19
    cos = [span for span in done[0].operators if span.name == "aten::cos"]
    wanted = (library.file("blocks"), library.line_of("blocks", "x = x.cos()"))
    assert [in_library(library, span)[:1] for span in cos[1:]] == [[wanted]] * 59


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is not the back end of this Python")
def test_silent_lines_behind_silent_lines_send_no_events_any_more(
    library: HotLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    look = Stacks.look_at_silent
    monkeypatch.setattr(Stacks, "look_at_silent", lambda of, stack, line: heard.append(line) or look(of, stack, line))
    x = torch.randn(2, 8, requires_grad=True)
    with recording(tmp_path, UserCode(library.root), libraries=True, limits=FREE):
        model = library.blocks.Late()
        for step in range(400):
            model(x, step == 0)
    silent = {library.line_of("blocks", text) for text in ("two = one == 3", "three = two == 4", "five = four == 6")}
    assert silent <= set(heard)
    last = heard[-10:]  # a machine that stalls may try a line longer
    assert silent.isdisjoint(last)
    assert library.line_of("blocks", "four = three == 5") in last, "a scope may be open before it"


@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")
@pytest.mark.parametrize("libraries", [True, False])
def test_a_compiled_model_is_compiled_once_and_computes_the_same(
    library: HotLibrary, tmp_path: Path, libraries: bool
) -> None:
    def losses(folder: Path | None) -> tuple[list[float], dict[str, int], dict[str, int]]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(0)
        model = library.blocks.Stack()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        compiled = torch.compile(model, backend="aot_eager")
        x = torch.randn(2, 8)
        found = []

        def train() -> None:
            for _ in range(8):
                optimizer.zero_grad()
                loss = compiled(x).pow(2).sum()
                loss.backward()
                optimizer.step()
                found.append(loss.item())

        if folder is None:
            train()
        else:
            with recording(folder, UserCode(library.root), libraries=libraries, limits=FREE) as done:
                train()
            assert done[0].record.account.warnings == []
        counters = torch._dynamo.utils.counters
        return found, dict(counters["stats"]), dict(counters["graph_break"])

    assert losses(tmp_path) == losses(None)
