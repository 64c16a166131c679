"""Settings as editors send them."""

import pytest

from deepscope_lsp.engine.settings import Settings, read_settings


@pytest.mark.parametrize(
    "given",
    [
        {"inlayHints": {"detail": "all", "threshold": 0.2}},
        {"deepscope": {"inlayHints": {"detail": "all", "threshold": 0.2}}},
        {"inlayHints.detail": "all", "inlayHints.threshold": 0.2},
        {"deepscope.inlayHints.detail": "all", "deepscope.inlayHints.threshold": 0.2},
    ],
)
def test_nested_and_dotted_names_mean_the_same(given: object) -> None:
    settings, problems = read_settings(given)
    assert (settings.inlay_hints_detail, settings.inlay_hints_threshold) == ("all", 0.2)
    assert not problems


def test_a_bad_value_is_named_and_the_default_used_for_it_alone() -> None:
    settings, problems = read_settings({"inlayHints": {"detail": "loud", "threshold": 0.5}, "traces": "runs"})
    assert settings == Settings(inlay_hints_threshold=0.5)
    assert len(problems) == 2
    assert "deepscope.inlayHints.detail" in problems[0]
    assert "'loud'" in problems[0]


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
