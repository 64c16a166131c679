"""`[tool.deepscope]` of a project: what it may say, and what is told where it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepscope.capture.options import checked_options
from deepscope.cli.recording_options import project_settings, with_settings
from deepscope.errors import SettingsError


def settings_of(folder: Path, text: str) -> dict[str, object]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return project_settings(str(folder / "scripts" / "train.py"), is_module=False)


def test_the_table_of_the_programs_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    text = (
        '[tool.deepscope]\nlibraries = "hot"\ninclude = ["a/*.py"]\nmax_slowdown = 3\nroot = "src"\ncontrol = "files"'
    )
    assert settings_of(tmp_path, text) == {
        "libraries": "hot", "include": ["a/*.py"], "max_slowdown": 3, "root": str(tmp_path / "src"), "control": "files",
    }  # fmt: skip


def test_a_module_belongs_to_the_project_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.deepscope]\nlines = false")
    monkeypatch.chdir(tmp_path)
    assert project_settings("package.train", is_module=True) == {"lines": False}


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'", "[tool.ruff]\nline-length = 120", "[tool.deepscope]"])
def test_a_project_that_says_nothing_has_no_settings(tmp_path: Path, text: str) -> None:
    assert settings_of(tmp_path, text) == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lins = true", "[tool.deepscope] lins: no such key; there are: align_time, all_threads, "),
        ("on_trace_ready = 'f'", "[tool.deepscope] on_trace_ready: no such key; there are: "),
        ("active = 3", "[tool.deepscope] active: belongs on the command line, as --active"),
        ("lines = 'yes'", "[tool.deepscope] lines = 'yes': Expected `bool`, got `str`"),
        ("keep_last = 2.5", "[tool.deepscope] keep_last = 2.5: Expected `int | null`, got `float`"),
        ("keep_last = 0", "[tool.deepscope] keep_last = 0: must be an integer, 1 or more"),
        ("include = [1]", "[tool.deepscope] include = [1]: Expected `str`, got `int`"),
        ("topics = 'lins'", "[tool.deepscope] topics = 'lins': there is no topic 'lins'; there are: "),
        ("root = 'absent'", "absent': must be an existing folder"),
    ],
)
def test_what_cannot_be_used_is_told_with_file_and_key(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of(tmp_path, f"[tool.deepscope]\n{line}")
    assert str(caught.value).startswith(f"{tmp_path / 'pyproject.toml'}: [tool.deepscope] ")
    assert words in str(caught.value)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.deepscope", "cannot be read: "),
        ("tool = 3", "cannot be read: "),
        ("[tool]\ndeepscope = 3", "[tool.deepscope] is 3; it must be a table"),
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace("[", r"\[")):
        settings_of(tmp_path, text)


def test_the_command_line_wins_and_its_topics_are_all_that_is_recorded() -> None:
    project = {"lines": False, "record_shapes": True, "source": "hash"}
    assert with_settings({"active": 2}, project) == {**project, "active": 2}
    chosen = checked_options(with_settings({"topics": "lines,memory", "source": "text"}, project))
    assert (chosen.lines, chosen.profile_memory, chosen.record_shapes, chosen.source) == (True, True, False, "text")
