"""Settings as editors send them."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from deepscope_lsp.engine.settings import Settings, read_settings


@pytest.mark.parametrize(
    "given",
    [
        {"inlayHints": {"detail": "all"}, "threshold": 0.2},
        {"deepscope": {"inlayHints": {"detail": "all"}, "threshold": 0.2}},
        {"inlayHints.detail": "all", "threshold": 0.2},
        {"deepscope.inlayHints.detail": "all", "deepscope.threshold": 0.2},
    ],
)
def test_nested_and_dotted_names_mean_the_same(given: object) -> None:
    settings, problems = read_settings(given)
    assert (settings.inlay_hints_detail, settings.threshold) == ("all", 0.2)
    assert not problems


def test_a_bad_value_is_named_and_the_default_used_for_it_alone() -> None:
    settings, problems = read_settings({"inlayHints": {"detail": "loud"}, "threshold": 0.5, "traces": "runs"})
    assert settings == Settings(threshold=0.5)
    assert len(problems) == 2
    assert "deepscope.inlayHints.detail" in problems[0]
    assert "'loud'" in problems[0]


def test_peaks_that_cannot_be_read_are_named_and_left_out() -> None:
    assert read_settings({"peaks": "fp32=67,bandwidth=3.35"})[0].peaks == "fp32=67,bandwidth=3.35"
    settings, problems = read_settings({"peaks": "fp32=fast"})
    assert settings.peaks == ""
    (problem,) = problems
    assert problem.startswith("deepscope.peaks: 'fp32=fast' cannot be used ('fp32=fast' cannot be used; wanted is ")


def test_later_layers_win_and_null_leaves_the_earlier_alone() -> None:
    settings, _ = read_settings({"changedLines": "hide", "rank": 2}, {"changedLines": "mark", "rank": None})
    assert (settings.changed_lines, settings.rank) == ("mark", 2)


def test_names_of_others_and_paths_with_dots_are_left_alone() -> None:
    mappings = {"/a.b/c": "/d.e"}
    settings, problems = read_settings({"extensionOnly": 1, "pathMappings": mappings, "inlayHints": {"font": "x"}})
    assert settings == Settings(path_mappings=mappings)
    assert not problems


@pytest.mark.parametrize("given", [[], 3, "x"])
def test_what_is_no_object_is_one_problem(given: object) -> None:
    assert read_settings(given)[0] == Settings()
    assert len(read_settings(given)[1]) == 1
    assert read_settings(None, None) == (Settings(), [])


def test_a_value_in_the_place_of_a_section_is_named() -> None:
    settings, problems = read_settings({"inlayHints": "off", "hover": False, "watch": None})
    assert settings == Settings()
    assert [problem.partition(":")[0] for problem in problems] == ["deepscope.inlayHints", "deepscope.hover"]


def test_every_setting_stands_in_the_documentation_with_its_default(repository: Path) -> None:
    page = (repository / "docs" / "lsp.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings") : page.index("## Commands")]
    rows = dict(re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE))
    documented = {}
    for names, defaults in rows.items():
        first, *others = re.findall(r"`([\w.]+)`", names)
        keys = [first, *(first.rpartition(".")[0] + name if name.startswith(".") else name for name in others)]
        values = [json.loads(value.strip("` ").lower()) for value in re.split(r",(?![^\[]*\])", defaults)]
        documented.update(zip(keys, values * (len(keys) if len(values) == 1 else 1), strict=True))
    settings, problems = read_settings(documented)
    assert problems == []
    assert msgspec.to_builtins(settings) == msgspec.to_builtins(Settings())
    sections = ("watch", "inlay_hints", "code_lens", "hover", "diagnostics", "highlights")
    fields = [field.name for field in msgspec.structs.fields(Settings)]
    assert len(documented) == len(fields)
    for field in fields:
        section = next((one for one in sections if field.startswith(f"{one}_")), "")
        name = f"{camel(section)}.{camel(field[len(section) + 1 :])}" if section else camel(field)
        assert name in documented


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)
