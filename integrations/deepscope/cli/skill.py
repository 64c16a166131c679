"""`deepscope skill install`: the skill for coding assistants, copied to where they look for skills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from deepscope import errors
from deepscope.cli.output import writing
from deepscope.errors import DeepScopeError
from deepscope.printable import printable
from deepscope.whole_files import whole_file

NAME = "deepscope"
FOLDERS = {
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "cursor": ".cursor/skills",
    "vscode": ".github/skills",
}
"""Where each assistant looks for a project's skills, as its documentation says (docs/assistants.md)."""
DEFAULT = ("claude", "codex")
"""Cursor and VS Code read these two, as well."""


@click.group()
def skill() -> None:
    """Teach coding assistants to find and prove what makes a training faster (docs/assistants.md)."""


@skill.command()
@click.argument("where", nargs=-1)
@click.option("--force", is_flag=True, help="Overwrite files that have another text.")
def install(where: Sequence[str], force: bool) -> None:
    """Copy the skill to where coding assistants look for skills, and say what was written.

    WHERE is claude, codex, cursor or vscode for its folder in this project, or another folder of skills, such as
    ~/.claude/skills for all your projects. By default it is claude and codex, whose folders the others read, too.
    """
    parents = [_parent(one) for one in where or DEFAULT]
    copies = [copy for parent in parents for copy in _copies(parent / NAME)]
    with writing(str(parents[0])):
        different = [path for path, text in copies if path.is_file() and path.read_bytes() != text]
        if different and not force:
            raise DeepScopeError(
                f"{different[0]}: has another text than this version's; --force overwrites it; nothing was written"
            )
        for path, text in copies:
            is_same = path.is_file() and path not in different
            if not is_same:
                with writing(str(path)):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with whole_file(path) as part:
                        part.write_bytes(text)
            click.echo(printable(f"{path}: {'is there already' if is_same else 'written'}"))


def _parent(word: str) -> Path:
    """The folder of skills that a word means.

    Raises:
        UsageError: it is neither an assistant nor looks like a folder.
    """
    if word in FOLDERS:
        return Path(FOLDERS[word])
    if not {"/", "\\"} & set(word) and not word.startswith((".", "~")):
        near = get_close_matches(word, FOLDERS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(FOLDERS)}"
        raise click.UsageError(f"no such assistant: {word}; {hint} (a folder stands as ./{word})")
    return Path(word).expanduser()


def skill_folder() -> Path:
    """The skill's files: in the installed package, else in this checkout.

    Raises:
        DeepScopeError: the installation lacks them.
    """
    package = Path(errors.__file__).resolve().parent
    for home in (package, package.parent.parent):
        if (home / "skills" / NAME / "SKILL.md").is_file():
            return home / "skills" / NAME
    raise DeepScopeError(f"{package}: the skill is not in this installation; install deepscope again")


def _copies(target: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file of the skill: where it goes, and its text."""
    source = skill_folder()
    for path in sorted(source.rglob("*.md")):
        yield target / path.relative_to(source), path.read_bytes()
