"""What commands answer: amounts, groups, call paths of a line, runs, and the words of a status."""

from typing import Any

import msgspec
import pytest

from deepscope.records import CallNode, Line, Module, Profile, SourceFile, Step
from deepscope_lsp.answers import Comparison, LinePath, ListedTrace, Remark
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.binding import FileHere
from deepscope_lsp.engine.call_paths import line_paths
from deepscope_lsp.engine.call_tree import DEPTH_LIMIT
from deepscope_lsp.engine.discovery import runs_of
from deepscope_lsp.engine.hot_lines import hot_lines, hot_modules
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.project import Project, Remembered
from deepscope_lsp.engine.status import status_of, steps_words
from deepscope_lsp.engine.wording import quantities
from lsp_profiles import SOURCE, make_profile

FILE = "/job/train.py"
SECOND = 10**9


def nowhere(_file: str, _line: int = 0) -> None:
    return None


def one_later(file: str, line: int) -> tuple[str, int]:
    return f"file://{file}", line + 100


def profile_of(lines: list[Line], tree: list[CallNode] | None = None) -> Profile:
    """Of three steps; the device works twice as long as for the lines."""
    profile = make_profile(FILE, root="/job")
    profile.lines, profile.call_tree, profile.functions = lines, tree or [], []
    profile.totals.steps = 3
    profile.totals.device_ns = 2 * sum(line.self_device_ns for line in lines)
    profile.no_line.cost_ns = profile.totals.device_ns // 2
    return profile


def measured(line: int, function: str, file: str = FILE, **numbers: int) -> Line:
    cost_ns = numbers.get("self_device_ns", 0)
    return Line(file=file, line=line, function=function, exact=True, cost_ns=cost_ns, **numbers)


@pytest.fixture
def index() -> ProfileIndex:
    return ProfileIndex(
        profile_of(
            [
                measured(1, "f", self_device_ns=30_000, wait_ns=9_000),
                measured(2, "g", self_device_ns=60_000, wait_ns=1_000, bytes_allocated=3 * 2**20),
                measured(3, "f", self_device_ns=15_000),
                measured(9, "h", "/q/data.py", self_cpu_ns=5),
            ]
        )
    )


def test_each_number_of_a_line_is_said_with_its_share_for_one_step(index: ProfileIndex) -> None:
    answer = hot_lines(index, nowhere, limit=9)
    words = {line.line: {name: amount.words for name, amount in line.amounts.items()} for line in answer.lines}
    assert words == {
        2: {"cost": "29 % · 20 µs", "device": "29 % · 20 µs", "wait": "10 % · 333 ns", "memory": "100 % · 1 MiB"},
        1: {"cost": "14 % · 10 µs", "device": "14 % · 10 µs", "wait": "90 % · 3 µs"},
        3: {"cost": "7.1 % · 5 µs", "device": "7.1 % · 5 µs"},
        9: {"cpu": "100 % · 1.67 ns"},
    }
    assert answer.lines[0].whole_words == "cost 60 µs, device 60 µs, waiting for the device 1 µs, allocated 3 MiB"


def test_the_amounts_of_functions_and_files_are_the_sums_of_their_lines(index: ProfileIndex) -> None:
    answer = hot_lines(index, nowhere, limit=1)
    assert [(one.function, one.amounts["device"].words) for one in answer.functions if "device" in one.amounts] == [
        ("g", "29 % · 20 µs"),
        ("f", "21 % · 15 µs"),
    ]
    files = {one.short_file: one.amounts for one in answer.files}
    assert files["train.py"]["device"].words == "50 % · 35 µs"
    assert list(files["/q/data.py"]) == ["cpu"]
    for metric in ("wait", "cpu", "memory"):
        assert sum(one.amounts[metric].share for one in answer.files if metric in one.amounts) == pytest.approx(1)


@pytest.mark.parametrize(("old_ns", "words"), [(36_000, "-2 µs"), (29_970, ""), (0, "new"), (30_000, "")])
def test_a_change_since_the_baseline_is_said_if_it_is_worth_a_word(old_ns: int, words: str) -> None:
    now = ProfileIndex(profile_of([measured(1, "f", self_device_ns=30_000)]))
    before = ProfileIndex(profile_of([measured(1, "f", self_device_ns=old_ns)]))
    (line,) = hot_lines(now, nowhere, limit=1, baseline=Baseline(before, now)).lines
    assert line.change_words == words
    assert line.baseline_words.startswith(f"{quantities.duration(old_ns / 3)}, now ")


def test_what_is_gone_since_the_baseline_is_said_with_its_time_there() -> None:
    now = ProfileIndex(profile_of([measured(1, "f", self_device_ns=30_000)]))
    old_lines = [measured(line, "f", self_device_ns=4_500_000) for line in (1, 2, 3)]
    before = ProfileIndex(profile_of(old_lines))
    answer = hot_lines(now, lambda file: FileHere(f"file://{file}", None), limit=1, baseline=Baseline(before, now))
    assert answer.vanished_words == "-3 ms"
    assert [(line.change_words, line.current_line) for line in answer.vanished] == [
        ("-1.50 ms", 2),
        ("-1.50 ms", 3),
    ]
    assert answer.vanished[0].time_words == "1.50 ms per step in the baseline (17 %)"


def test_a_module_is_shown_with_what_is_in_it_and_its_own_part(index: ProfileIndex) -> None:
    numbers = {"self_device_ns": 3_000, "total_device_ns": 27_000, "self_cpu_ns": 6}
    index.profile.modules = [Module(path="encoder.0", class_name="Linear", **numbers)]
    (module,) = hot_modules(index, limit=1).modules
    assert (module.amounts["device"].words, module.own_words) == ("13 % · 9 µs", "own 1 µs")
    assert module.amounts["cpu"].words == "100 % · 2 ns"


def tree_index(*nodes: tuple[int, str, int, int]) -> ProfileIndex:
    """Of parent, function, line and own time for each node; a step."""
    lines: dict[tuple[str, int], Line] = {}
    tree = []
    for parent, function, line, self_ns in nodes:
        record = lines.setdefault((function, line), measured(line, function))
        record.self_device_ns += self_ns
        tree.append(CallNode(parent, list(lines).index((function, line)), self_ns, 0))
    profile = profile_of(list(lines.values()), tree)
    profile.totals.steps = 1
    return ProfileIndex(profile)


CALLS = (
    (-1, "main", 1, 0),
    (0, "a", 2, 0),
    (0, "b", 3, 0),
    (1, "hot", 5, 30),
    (2, "hot", 5, 20),
    (3, "leaf", 9, 30),
    (4, "leaf", 9, 20),
)


def rows(paths: list[LinePath]) -> list[tuple[str, int, str]]:
    return [(row.function, row.ns, row.time_words) for row in paths]


def test_the_paths_of_a_line_join_the_chains_above_it_and_the_trees_below_it() -> None:
    answer = line_paths(tree_index(*CALLS), one_later, FILE, 5)
    assert rows(answer.callers) == [("a", 60, "60 ns"), ("b", 40, "40 ns")]
    assert rows(answer.callers[0].children) == [("main", 60, "60 ns")]
    assert rows(answer.callees) == [("leaf", 50, "50 ns")]
    assert answer.line is not None
    assert (answer.line.current_line, answer.step_words) == (105, "per step")


def test_a_line_is_asked_for_as_it_was_recorded() -> None:
    answer = line_paths(tree_index(*CALLS), one_later, FILE, 105)
    assert (answer.line, answer.callers, answer.callees) == (None, [], [])


def test_recursion_is_counted_once() -> None:
    answer = line_paths(tree_index((-1, "main", 1, 0), (0, "hot", 5, 20), (1, "hot", 5, 80)), nowhere, FILE, 5)
    assert [row.ns for row in answer.callers] == [100]
    assert [row.ns for row in answer.callees] == [80]


def test_a_deep_recursion_has_paths() -> None:
    nodes = [(-1, "main", 1, 0), *((depth, "deep", 10 + depth, 1) for depth in range(DEPTH_LIMIT + 50))]
    answer = line_paths(tree_index(*nodes), nowhere, FILE, 10 + 90)
    assert answer.callers
    assert answer.callees


def listed(**change: Any) -> ListedTrace:
    trace = ListedTrace(
        path="/w/a.pt.trace.json",
        name="a.pt.trace.json",
        size_bytes=1,
        size_words="1 B",
        recorded_ns=SECOND,
        run="a",
        program="",
        step_ns=None,
        step_time_words="",
        rank=None,
        world_size=1,
        window=None,
        stage="",
        device="",
        commit="",
        selected=False,
        problem="",
    )
    return msgspec.structs.replace(trace, **change)


def test_traces_are_listed_by_run_the_newest_first() -> None:
    lone = listed(run="a", recorded_ns=1, program="tools/train.py", step_ns=2_790_000_000)
    ranks = [listed(run="b", recorded_ns=2 + rank, rank=rank, selected=rank == 0, program="ddp.py") for rank in (0, 1)]
    runs = runs_of([lone, *ranks])
    assert [(run.program, run.step_time_words, run.ranks, run.selected) for run in runs] == [
        ("ddp.py", "", 2, True),
        ("tools/train.py", "2.79 s a step", 1, False),
    ]
    assert [trace.rank for trace in runs[0].traces] == [1, 0]


def test_a_run_has_the_step_time_of_its_training_whatever_was_recorded_after_it() -> None:
    stages = [
        listed(stage=stage, recorded_ns=9 - place, step_ns=2_790_000_000 if stage == "fit" else 5_000)
        for place, stage in enumerate(["validate", "fit", "test"])
    ]
    assert runs_of(stages)[0].step_time_words == "2.79 s a step"


def test_the_step_time_of_a_run_is_the_mean_of_the_newest_traces_of_its_ranks() -> None:
    windows = [
        listed(stage="fit", recorded_ns=recorded_ns, rank=rank, step_ns=step_s * SECOND)
        for recorded_ns, rank, step_s in ((9, 0, 4), (9, 1, 2), (8, 0, 7))
    ]
    assert runs_of(windows)[0].step_time_words == "3 s a step"


@pytest.mark.parametrize(
    ("count", "first", "last", "words"),
    [
        (3, 2, 4, "steps 2–4"),  # noqa: RUF001
        (1, 7, 7, "step 7"),
        (3, None, None, "3 steps"),
        (1, None, None, "1 step"),
        (0, None, None, "the whole recording"),
    ],
)
def test_the_recorded_steps_in_words(count: int, first: int | None, last: int | None, words: str) -> None:
    assert steps_words(count, first, last) == words


def with_steps(*durations_ns: int) -> Profile:
    profile = make_profile(FILE, root="/job")
    rest = {"start_ns": 0, "device_ns": 0, "busy_ns": 0, "idle_ns": 0, "wait_ns": 0}
    profile.totals.steps, profile.totals.wall_ns = len(durations_ns), sum(durations_ns)
    profile.steps = [Step(number=place, duration_ns=ns, **rest) for place, ns in enumerate(durations_ns)]
    return profile


@pytest.mark.parametrize(
    ("old", "new", "words", "remarks"),
    [
        ((), (2_790_000_000, 2_790_000_000), "step 2.79 s", []),
        ((2_950_000_000, 2_950_000_000), (2_780_000_000, 2_800_000_000), "step 2.95 → 2.79 s, -5.4 %", []),
        # The means' difference has one degree of freedom: 12.706 times 0.95 s is 409 % of 2.95 s.
        (
            (2_000_000_000, 3_900_000_000),
            (2_790_000_000, 2_790_000_000),
            "step 2.95 → 2.79 s, -5.4 %",
            ["within noise (±409 %)"],
        ),
        ((2_000_000_000,), (3_000_000_000,), "step 2 → 3 s, +50 %", ["noise unknown"]),
        ((), (), "", []),
    ],
)
def test_a_status_says_the_time_of_a_step_and_how_it_has_changed(
    old: tuple[int, ...], new: tuple[int, ...], words: str, remarks: list[str]
) -> None:
    project = Project("", Remembered(""))
    project.show(with_steps(*new), [], with_steps(*old) if old else None)
    status = status_of(project, "ready")
    assert (status.step_time_words, [remark.words for remark in status.remarks]) == (words, remarks)


def test_a_status_says_that_the_same_code_ran_and_that_the_machine_was_busy() -> None:
    def ran(*durations_ns: int, **machine: float) -> Profile:
        profile = with_steps(*durations_ns)
        profile.files = {FILE: SourceFile(sha256="ab", text=SOURCE)}
        profile.trace.recording = {"machine": {"cores": 8, **machine}}
        return profile

    def remarks(new: Profile, old: Profile) -> list[Remark]:
        project = Project("", Remembered(""))
        project.show(new, [], old)
        status = status_of(project, "ready")
        assert status.comparison == Comparison(is_chosen=False, steps_differ=True, is_same_code=True)
        return status.remarks

    same, busy = remarks(ran(3_000, 3_002, core_wait_ratio=0.38, others_cores=6.0), ran(2_000, 2_002))
    assert (same.words, busy.words) == ("same code", "machine busy (38 %)")
    assert busy.detail.startswith("The machine was busy: the program waited for a core 38 % of the time")
    same, busy = remarks(ran(3_000, 3_002, stolen_ratio=0.01), ran(2_000, 2_002, stolen_ratio=0.5))
    assert busy.words == "machine busy before (50 %)"
    assert busy.detail.startswith("In the baseline's run the machine was busy: its host gave 50 %")


@pytest.mark.parametrize(
    ("old_ns", "new_ns", "words"),
    [(2.95e9, 2.79e9, "2.95 → 2.79 s"), (1.21e9, 790e6, "1.21 s → 790 ms"), (3e6, 3e6, "3 → 3 ms")],
)
def test_two_times_have_one_unit_where_it_is_the_same(old_ns: float, new_ns: float, words: str) -> None:
    assert quantities.durations(old_ns, new_ns) == words


@pytest.mark.parametrize(("change_ns", "words"), [(3.12e6, "+3.12 ms"), (-120e6, "-120 ms"), (0, "0")])
def test_a_difference_has_its_sign(change_ns: float, words: str) -> None:
    assert quantities.difference(change_ns) == words
