"""The skill for assistants: its format, the commands it teaches, and `deepscope skill install`."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from assistant_calls import SKILL, documented_commands, steps_of_the_skill, tokens
from deepscope.analysis.findings import RULES
from deepscope.cli.entry import deepscope
from deepscope.cli.skill import DEFAULT, FOLDERS, skill_folder
from deepscope.errors import DeepScopeError

PAGES = sorted(SKILL.rglob("*.md"))
FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
"""Those that agentskills.io's specification has."""


def front_matter() -> dict[str, str]:
    found = re.match(r"---\n(.+?)\n---\n", (SKILL / "SKILL.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return dict(line.split(": ", 1) for line in found[1].splitlines())


def test_the_front_matter_is_as_the_specification_has_it() -> None:
    fields = front_matter()
    assert fields.keys() <= FIELDS
    assert fields["name"] == SKILL.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert len(fields["name"]) <= 64
    assert 0 < len(fields["description"]) <= 1024
    assert 0 < len(fields["compatibility"]) <= 500
    assert not any(": " in value or value.startswith(("'", '"', "[", "{")) for value in fields.values()), "plain YAML"


def test_it_is_short() -> None:
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 300
    assert sum(tokens(page.read_text(encoding="utf-8")) for page in PAGES) < 5_000


def test_its_references_are_there_and_lead_no_further() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (SKILL / "SKILL.md").read_text(encoding="utf-8"))
    assert {SKILL / link for link in links} == {page for page in PAGES if page.name != "SKILL.md"}
    for page in PAGES:
        if page.name != "SKILL.md":
            assert page.parent == SKILL / "references"
            assert "](" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["AGENTS.md", "docs/assistants.md"])
def test_the_pages_for_assistants_lead_to_files_that_are_there(repository: Path, page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (repository / page).read_text(encoding="utf-8"))
    assert [one for one in links if "://" not in one and not ((repository / page).parent / one).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_it_teaches_is_one(page: Path) -> None:
    commands = [words for words in documented_commands(page) if "COMMAND" not in words]
    assert commands
    for words in commands:
        if words[1:] != ["--version"]:
            parse(deepscope, words[1:])


def parse(group: click.Group, words: list[str]) -> None:
    """Reads the words as the command line does, without running anything."""
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, words
    if isinstance(command, click.Group):
        parse(command, words[1:])
    elif words[1:]:  # else it is named, and not meant to be run so
        command.make_context(words[0], words[1:])


def test_its_loop_records_opens_tries_and_verifies() -> None:
    assert [words[1] for words in steps_of_the_skill()] == ["run", "report", "try", "verify"]


def test_every_finding_that_it_names_is_one() -> None:
    named = {code for page in PAGES for code in re.findall(r"DS\d{3}", page.read_text(encoding="utf-8"))}
    assert named
    assert named <= {rule.code for rule in RULES}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(deepscope, ["skill", "install", *words])
    return done.exit_code, done.output + str(done.exception or "")


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("assistants", [(), *((one,) for one in FOLDERS), ("cursor", "vscode")])
def test_it_is_copied_to_where_assistants_look(
    assistants: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = install(tmp_path, monkeypatch, *assistants)
    assert code == 0, output
    parents = [FOLDERS[one] for one in assistants or DEFAULT]
    expected = {f"{parent}/deepscope/{name}" for parent in parents for name in files_below(skill_folder())}
    assert files_below(tmp_path) == expected
    assert all(f"{name}: written" in output for name in expected)


def test_it_is_copied_to_a_folder_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert install(tmp_path, monkeypatch, "~/.claude/skills")[0] == 0
    assert (tmp_path / ".claude/skills/deepscope/SKILL.md").read_bytes() == (SKILL / "SKILL.md").read_bytes()
    code, output = install(tmp_path, monkeypatch, "cluade")
    assert (code, "did you mean claude?" in output) == (2, True)


def test_a_changed_file_is_overwritten_only_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    changed = tmp_path / FOLDERS["codex"] / "deepscope" / "SKILL.md"
    changed.write_text("mine")
    lost = tmp_path / FOLDERS["claude"] / "deepscope" / "SKILL.md"
    lost.unlink()
    code, output = install(tmp_path, monkeypatch)
    assert code == 1
    assert "--force" in output
    assert changed.read_text() == "mine"
    assert not lost.exists(), "nothing is written where something cannot be"
    code, output = install(tmp_path, monkeypatch, "--force")
    assert (code, output.count(": written"), output.count(": is there already")) == (0, 2, 2 * len(PAGES) - 2)
    assert changed.read_bytes() == lost.read_bytes() == (SKILL / "SKILL.md").read_bytes()


def test_the_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeepScopeError, match=r"^taken/deepscope/.*: cannot be written: "):
        deepscope.main(["skill", "install", "./free", "./taken"], standalone_mode=False)
