"""What an editor shows below a line: in call paths and the first line of a hover."""

from __future__ import annotations

import pytest

from deepscope.records import Line, Part, PartKey
from deepscope.report.call_paths import DEPTHS, Depth
from deepscope_lsp.answers import CallPath, LinePath
from deepscope_lsp.engine.call_paths import call_paths, line_paths
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.wording.hover import HoverContext, line_hover
from lsp_profiles import LIBRARY, NET, make_opened_profile

FILE = "/job/train.py"
TIMES = "\N{MULTIPLICATION SIGN}"
MS = 10**6


def one_later(file: str, line: int) -> tuple[str, int] | None:
    return (f"file://{file}", line + 1) if file == LIBRARY else None


def nowhere(_file: str, _line: int) -> None:
    return None


@pytest.fixture
def index() -> ProfileIndex:
    return ProfileIndex(make_opened_profile(FILE, root="/job"))


def nodes(roots: list[CallPath], depth: int = 0) -> list[tuple[int, CallPath]]:
    """Every node of the call paths with its depth, parents first."""
    return [found for node in roots for found in ((depth, node), *nodes(node.children, depth + 1))]


def named(index: ProfileIndex, depth: Depth) -> list[tuple[int, str, int]]:
    """Depth, name and time of every node that has time on the device, parents first."""
    roots = call_paths(index, nowhere, depth=depth, min_share=0).roots
    return [(at, node.name, node.total_ns // MS) for at, node in nodes(roots) if node.total_ns]


def test_call_paths_go_on_below_the_lines(index: ProfileIndex) -> None:
    assert named(index, "kernel") == [
        (0, "train", 90),
        (1, "Net.forward", 60),
        (2, "encoder.0", 35),
        (3, "Layer.forward", 35),
        (4, "proj", 35),
        (5, "aten::mm", 35),
        (6, "sgemm<float>", 35),
        (2, "encoder.1", 22),
        (3, "Layer.forward", 22),
        (4, "proj", 20),
        (5, "aten::mm", 20),
        (6, "sgemm<float>", 20),
        (2, "(other)", 3),
        (1, "Net.forward", 30),
        (2, "aten::relu", 30),
        (3, "sgemm<float>", 30),
        (0, "(no user line)", 10),
    ]


def test_what_lies_deeper_is_time_of_what_holds_it(index: ProfileIndex) -> None:
    assert named(index, "module") == [
        (0, "train", 90),
        (1, "Net.forward", 60),
        (2, "encoder.0", 35),
        (3, "proj", 35),
        (2, "encoder.1", 22),
        (3, "proj", 20),
        (1, "Net.forward", 30),
        (0, "(no user line)", 10),
    ]
    project = call_paths(index, nowhere, depth="module", min_share=0).roots[0].children[0]
    assert (project.self_ns, project.children[1].self_ns) == (3 * MS, 2 * MS)


@pytest.mark.parametrize(
    ("path", "name"),
    [("encoder.0.mlp.up", "mlp.up"), ("encoder.0.3", "0.3"), ("encoder", "encoder"), ("encoder.01", "encoder.01")],
)
def test_a_module_is_named_by_the_rest_of_its_path(index: ProfileIndex, path: str, name: str) -> None:
    index.profile.places[3] = PartKey("module", path, LIBRARY, 30)
    assert named(ProfileIndex(index.profile), "module")[3][1] == name


@pytest.mark.parametrize("depth", DEPTHS)
def test_every_depth_holds_the_same_time(index: ProfileIndex, depth: Depth) -> None:
    roots = call_paths(index, nowhere, depth=depth, min_share=0).roots
    assert [root.total_ns for root in roots] == [90 * MS, 10 * MS, 0]
    assert sum(root.total_backward_ns for root in roots) == 10 * MS
    assert sum(root.total_cpu_ns for root in roots) == 11 * MS
    assert call_paths(index, nowhere, depth=depth, min_share=0.25).roots[0].total_ns == 90 * MS


def test_nodes_say_what_they_are_and_where_they_stand(index: ProfileIndex) -> None:
    by_name = {node.name: node for _, node in nodes(call_paths(index, one_later, depth="kernel").roots)}
    assert (by_name["train"].kind, by_name["train"].line) == ("line", NET["call"])
    project = by_name["proj"]
    assert (project.kind, project.whole_name, project.function) == ("module", "encoder.1.proj", "")
    assert (project.file, project.line, project.uri, project.current_line) == (LIBRARY, 30, f"file://{LIBRARY}", 31)
    library = by_name["Layer.forward"]
    assert (library.kind, library.function, library.line) == ("library", "Layer.forward", 12)
    kernel = by_name["sgemm<float>"]
    assert (kernel.kind, kernel.file, kernel.line, kernel.uri) == ("kernel", "", 0, None)
    assert kernel.whole_name == "void ns::sgemm<float>(float*)"
    assert by_name["(other)"].kind == "other"


def test_parts_of_one_place_under_one_parent_are_one_node(index: ProfileIndex) -> None:
    places = index.profile.places
    places.append(PartKey("library", "Layer.again", LIBRARY, 14))
    index.profile.parts += [
        Part(1, 0, len(places) - 1, 0, 0, 2),
        Part(1, len(index.profile.parts), 3, -(0), 0, 2),
    ]
    assert named(ProfileIndex(index.profile), "module")[2:4] == [(2, "encoder.0", 35), (3, "proj", 35)]


def test_call_paths_stop_at_the_lines_unless_asked(index: ProfileIndex) -> None:
    roots = call_paths(index, nowhere).roots
    assert [child.children for child in roots[0].children] == [[], []]
    project = call_paths(index, nowhere, depth="operator").roots[0].children[0]
    assert [(one.kind, one.name, one.total_ns // MS) for one in project.children] == [
        ("module", "encoder.0", 35),
        ("module", "encoder.1", 22),
        ("other", "(other)", 3),
    ]
    assert (project.children[0].calls, project.children[0].total_backward_ns) == (2, 10 * MS)


def rows(paths: list[LinePath]) -> list[tuple[str, str, str]]:
    return [(row.name, row.time_words, row.detail_words) for row in paths]


def test_a_line_has_the_parts_of_its_work_below_it(index: ProfileIndex) -> None:
    answer = line_paths(index, one_later, FILE, NET["project"], depth="kernel")
    assert rows(answer.callers) == [("train", "30 ms", "")]
    assert rows(answer.callees) == [
        ("encoder.0", "17.5 ms", "backward 5 ms, 1 call"),
        ("encoder.1", "11 ms", "1 call"),
        ("(other)", "1.50 ms", "all its own, 4.5 calls"),
    ]
    (forward,) = answer.callees[1].children
    assert rows([forward]) == [("Layer.forward", "11 ms", "own 1 ms, 1 call")]
    assert (forward.uri, forward.current_line) == (f"file://{LIBRARY}", 13)
    assert line_paths(index, nowhere, FILE, NET["project"]).callees == []


def test_a_line_that_calls_has_its_callees_with_their_parts(index: ProfileIndex) -> None:
    (project, relu) = line_paths(index, nowhere, FILE, NET["call"], depth="module").callees
    assert [child.name for child in project.children] == ["encoder.0", "encoder.1"]
    assert relu.children == []


def lead(index: ProfileIndex, name: str) -> str:
    """The second paragraph of a hover."""
    record = index.files[FILE].lines[NET[name]]
    return line_hover(record, HoverContext(index, one_later)).split("\n\n")[1]


def test_a_hover_leads_with_the_main_branch(index: ProfileIndex) -> None:
    place = f"[pack/layers.py:13](file://{LIBRARY}#L13)"
    assert (
        lead(index, "project") == f"`encoder.*` {TIMES}2 → {place} → `proj` → `aten::mm` → `sgemm<float>`: 92 % of it"
    )


def test_layers_within_layers_are_each_counted(index: ProfileIndex) -> None:
    for number, name in enumerate(("encoder.0", "encoder.1", "encoder.0.3", "encoder.1.3")):
        index.profile.places[(0, 1, 3, 4)[number]] = PartKey("module", name, LIBRARY, 10)
    index.profile.places.append(PartKey("module", "encoder.0.4", LIBRARY, 10))
    parts = index.profile.parts
    parts += [Part(1, 1, 9, 0, 0, 2), Part(1, len(parts), 5, 0, 0, 2), Part(1, len(parts) + 1, 6, 5 * MS, 0, 4)]
    parts[4].self_device_ns = 30 * MS
    words = lead(index, "project")
    assert words.startswith(f"`encoder.*` {TIMES}2 → ")
    assert words.endswith(f"→ `encoder.*.*` {TIMES}2 → `aten::mm` → `sgemm<float>`: 92 % of it")


def test_a_hover_names_no_operator_that_the_line_names_unless_its_kernel_is_known(index: ProfileIndex) -> None:
    assert lead(index, "relu") == "`aten::relu` → `sgemm<float>`: 100 % of it"
    index.profile.parts = index.profile.parts[:-2]
    index.profile.parts.append(Part(2, -1, 8, 30 * MS, 0, 2))
    cpu = ProfileIndex(index.profile)
    assert lead(cpu, "relu").startswith("|")
    index.profile.places[8] = PartKey("operator", "aten::gelu")
    assert lead(ProfileIndex(index.profile), "relu") == "`aten::gelu`: 100 % of it"


def test_a_branch_ends_where_less_than_half_of_the_line_is_left(index: ProfileIndex) -> None:
    parts = index.profile.parts
    parts[4].self_device_ns, parts[9].self_device_ns = 14 * MS, 10 * MS
    parts += [Part(1, 3, 6, 21 * MS, 0, 1), Part(1, 8, 6, 10 * MS, 0, 1)]
    index.profile.places.append(PartKey("kernel", "other_kernel"))
    for part in parts[-2:]:
        part.place = len(index.profile.places) - 1
    assert lead(ProfileIndex(index.profile), "project").endswith("→ `aten::mm` → `other_kernel`: 52 % of it")
    parts[-2].self_device_ns, parts[4].self_device_ns = 17 * MS, 18 * MS
    assert lead(ProfileIndex(index.profile), "project").endswith("`proj` → `aten::mm`: 92 % of it")


def test_a_line_without_parts_has_no_lead(index: ProfileIndex) -> None:
    index.profile.parts = []
    assert lead(ProfileIndex(index.profile), "project").startswith("|")


def test_hostile_names_of_parts_stay_text_and_short(index: ProfileIndex) -> None:
    evil = "[x](command:evil) <img src=x>`\n# " + "a" * 400
    index.profile.places[5] = PartKey("operator", evil)
    index.profile.places[2] = PartKey("library", evil, "/x/[y](command:z)/l.py", 12)
    words = lead(ProfileIndex(index.profile), "project")
    assert "\n" not in words
    assert len(words) < 400
    assert r"``[x](command:evil) <img src=x>`\n# aaa" in words
    assert r"\[y\](command:z)" in words
    found = nodes(call_paths(ProfileIndex(index.profile), nowhere, depth="kernel", min_share=0).roots)
    assert evil[:4] in "".join(node.name for _, node in found)
    assert all(node.name.isprintable() and node.whole_name.isprintable() for _, node in found)


def with_library_line(index: ProfileIndex) -> ProfileIndex:
    times = {"self_device_ns": 2 * MS, "total_device_ns": 57 * MS, "calls": 4}
    index.profile.library_lines = [Line(file=LIBRARY, line=12, function="Layer.forward", exact=True, **times)]
    return ProfileIndex(index.profile)


def test_a_recorded_line_of_a_library_has_the_users_lines_above_it(index: ProfileIndex) -> None:
    answer = line_paths(with_library_line(index), one_later, LIBRARY, 12, depth="line")
    assert answer.line is not None
    assert (answer.line.function, answer.line.current_line) == ("Layer.forward", 13)
    assert rows(answer.callers) == [("encoder.0", "17.5 ms", ""), ("encoder.1", "11 ms", "")]
    (user,) = answer.callers[0].children
    assert (user.kind, user.line, user.ns) == ("line", NET["project"], 35 * MS)
    assert rows(answer.callees) == [
        ("encoder.0.proj", "17.5 ms", "all its own, backward 5 ms, 1 call"),
        ("encoder.1.proj", "10 ms", "all its own, 1 call"),
    ]


def test_a_hover_on_a_line_of_a_library_leads_with_what_is_below_it(index: ProfileIndex) -> None:
    opened = with_library_line(index)
    words = line_hover(opened.files[LIBRARY].lines[12], HoverContext(opened, nowhere)).split("\n\n")[1]
    assert words == f"`encoder.*.proj` {TIMES}2 → `aten::mm` → `sgemm<float>`: 96 % of it"
