"""Settings as editors send them."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from deepscope_lsp.engine.settings import Settings, in_settings, read_settings


@pytest.mark.parametrize(
    "given",
    [
        {"inlayHints": "all", "threshold": 0.2},
        {"deepscope": {"inlayHints": "all", "threshold": 0.2}},
        {"deepscope.inlayHints": "all", "deepscope.threshold": 0.2},
    ],
)
def test_names_may_stand_below_the_section_or_behind_its_prefix(given: object) -> None:
    settings, problems = read_settings(given)
    assert (settings.inlay_hints, settings.threshold) == ("all", 0.2)
    assert not problems


def test_a_bad_value_is_named_and_the_default_used_for_it_alone() -> None:
    settings, problems = read_settings({"inlayHints": "loud", "threshold": 0.5, "traces": "runs"})
    assert settings == Settings(threshold=0.5)
    assert len(problems) == 2
    assert "deepscope.inlayHints" in problems[0]
    assert "'loud'" in problems[0]


def test_peaks_that_cannot_be_read_are_named_and_left_out() -> None:
    assert read_settings({"peaks": "fp32=67,bandwidth=3.35"})[0].peaks == "fp32=67,bandwidth=3.35"
    settings, problems = read_settings({"peaks": "fp32=fast"})
    assert settings.peaks == ""
    (problem,) = problems
    assert problem.startswith("deepscope.peaks: 'fp32=fast' cannot be used ('fp32=fast' cannot be used; expected ")


def test_later_layers_win_and_null_leaves_the_earlier_alone() -> None:
    settings, _ = read_settings({"changedLines": "hide", "peaks": "fp32=1"}, {"changedLines": "mark", "peaks": None})
    assert (settings.changed_lines, settings.peaks) == ("mark", "fp32=1")


def test_names_of_others_and_paths_with_dots_are_left_alone() -> None:
    mappings = {"/a.b/c": "/d.e"}
    settings, problems = read_settings({"extensionOnly": 1, "pathMappings": mappings, "heat.font": "x"})
    assert settings == Settings(path_mappings=mappings)
    assert not problems


@pytest.mark.parametrize("given", [[], 3, "x"])
def test_what_is_no_object_is_one_problem(given: object) -> None:
    assert read_settings(given)[0] == Settings()
    assert len(read_settings(given)[1]) == 1
    assert read_settings(None, None) == (Settings(), [])


def test_what_is_shown_is_one_object_in_which_a_wrong_name_or_value_is_named() -> None:
    show = {"trace": "runs", "stage": "validate", "rank": 1, "step": 3, "partial": True}
    settings, problems = read_settings({"show": show})
    assert (msgspec.to_builtins(settings.show), problems) == (show, [])
    for wrong, word in (({"ranks": 1}, "ranks"), ({"rank": "one"}, "rank"), ("runs", "'runs'")):
        settings, problems = read_settings({"show": wrong})
        assert settings == Settings()
        (problem,) = problems
        assert problem.startswith("deepscope.show: ")
        assert word in problem


@pytest.mark.parametrize(
    ("given", "is_watching", "poll_seconds", "quiet_seconds"),
    [(2, True, 2, 0.5), (60, True, 60, 0.5), (0.4, True, 0.4, 0.1), (0, False, 2, 0.5)],
)
def test_one_number_says_how_traces_are_looked_for(
    given: float, is_watching: bool, poll_seconds: float, quiet_seconds: float
) -> None:
    settings, problems = read_settings({"watchSeconds": given})
    assert problems == []
    assert settings.is_watching is is_watching
    assert (settings.poll_seconds, settings.quiet_seconds) == (poll_seconds, quiet_seconds)


def test_options_of_the_library_have_the_names_of_settings() -> None:
    assert in_settings("rank", 5) == "deepscope.show.rank 5"
    assert in_settings("partial", True) == "deepscope.show.partial"
    assert in_settings("peaks", "fp32=1") == "deepscope.peaks fp32=1"


def test_every_setting_stands_in_the_documentation_with_its_default(repository: Path) -> None:
    page = (repository / "docs" / "lsp.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings") : page.index("## Commands")]
    rows = dict(re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE))
    documented = {name.strip("`"): json.loads(default.strip("`")) for name, default in rows.items()}
    settings, problems = read_settings(documented)
    assert problems == []
    assert msgspec.to_builtins(settings) == msgspec.to_builtins(Settings())
    assert set(documented) == {field.encode_name for field in msgspec.structs.fields(Settings)}


def test_the_extension_has_each_setting_of_the_server_with_its_default(repository: Path) -> None:
    manifest = json.loads((repository / "vscode-extension" / "package.json").read_text(encoding="utf-8"))
    properties = manifest["contributes"]["configuration"]["properties"]
    given = {name: one["default"] for name, one in properties.items()}
    assert {f"deepscope.{field.encode_name}" for field in msgspec.structs.fields(Settings)} <= set(given)
    settings, problems = read_settings(given)
    assert problems == []
    assert settings == msgspec.structs.replace(Settings(), code_lens=False)  # lenses move the code
