"""Jumps after edits: where a recorded line stands at the moment of the click, through the protocol."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from lsp_editor import Editor, editing, run
from lsp_profiles import NET, SOURCE, record

ABOVE = "# one\n# two\n# three\n"


@pytest.fixture
def root(root: Path) -> Path:
    """The project, with a trace of it."""
    record(root)
    return root


@asynccontextmanager
async def looking_at(path: Path, tmp_path: Path) -> AsyncIterator[tuple[Editor, str]]:
    """An editor in which the trace is shown and a file of the project is open."""
    async with editing(path.parent, cache=tmp_path / "cache") as editor:
        await editor.until_ready()
        yield editor, editor.open(path)


async def jump(editor: Editor, root: Path, line: int) -> tuple[int, str] | None:
    """Line now and standing of a recorded line of train.py; its URI is checked."""
    found = await editor.command("locate", file=str(root / "train.py"), line=line)
    if found is None:
        return None
    assert found["uri"] == (root / "train.py").as_uri()
    return found["line"], found["standing"]


async def told_lines(editor: Editor, line: int) -> dict[str, Any]:
    """Where the answers that draw a view say that a recorded line stands."""
    hot = await editor.command("hotLines")
    paths = await editor.command("callPaths")
    callers = await editor.command("callers", file=hot["lines"][0]["file"], line=NET["project"])
    return {
        "hotLines": {one["currentLine"] for one in hot["lines"] if one["line"] == line},
        "callPaths": {one["currentLine"] for one in paths["roots"] if one["line"] == line},
        "callers": {one["currentLine"] for one in callers if one["line"] == line},
    }


def test_a_hot_line_says_whether_it_is_what_ran_was_edited_or_is_gone(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with looking_at(root / "train.py", tmp_path) as (editor, uri):

            async def standings() -> dict[int, str]:
                hot = await editor.command("hotLines")
                return {one["line"]: one["standing"] for one in hot["lines"]}

            assert set((await standings()).values()) == {"same"}
            editor.edit(uri, (0, 0), (0, 0), ABOVE)
            assert set((await standings()).values()) == {"same"}
            relu, call = NET["relu"] + 3, NET["call"] + 3
            editor.edit(uri, (call - 1, 0), (call, 0), "")
            editor.edit(uri, (relu - 1, 8), (relu - 1, 8), "1 * ")
            found = await standings()
            assert (found[NET["relu"]], found[NET["call"]], found[NET["project"]]) == ("edited", "gone", "same")

    run(scenario())


def test_an_edit_moves_the_places_of_every_answer_before_it_is_saved(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with looking_at(root / "train.py", tmp_path) as (editor, uri):
            editor.edit(uri, (0, 0), (0, 0), ABOVE)
            assert await jump(editor, root, NET["project"]) == (NET["project"] + 3, "same")
            moved = NET["call"] + 3
            assert await told_lines(editor, NET["call"]) == {
                "hotLines": {moved},
                "callPaths": {moved},
                "callers": {moved},
            }
            editor.edit(uri, (0, 0), (5, 0), "")  # the three, and two recorded lines above
            assert await jump(editor, root, NET["project"]) == (NET["project"] - 2, "same")

    run(scenario())


def test_an_edited_line_is_jumped_to_and_of_a_deleted_one_the_line_above(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with looking_at(root / "train.py", tmp_path) as (editor, uri):
            editor.edit(uri, (0, 0), (0, 0), ABOVE)
            place = NET["relu"] + 3
            editor.edit(uri, (place - 1, 17), (place - 1, 21), "gelu")
            assert await jump(editor, root, NET["relu"]) == (place, "edited")
            editor.edit(uri, (place - 1, 0), (place, 0), "")
            assert await jump(editor, root, NET["relu"]) == (place - 1, "gone")
            assert await jump(editor, root, NET["call"]) == (NET["call"] + 2, "same")

    run(scenario())


def test_edits_that_were_never_saved_are_forgotten_with_their_document(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with looking_at(root / "train.py", tmp_path) as (editor, uri):
            editor.edit(uri, (0, 0), (0, 0), ABOVE)
            editor.close(uri)
            assert await jump(editor, root, NET["project"]) == (NET["project"], "same")

    run(scenario())


def test_a_file_that_changed_on_disk_while_it_was_closed_is_mapped_too(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            program = root / "train.py"
            assert await jump(editor, root, NET["project"]) == (NET["project"], "same")
            program.write_text(ABOVE + SOURCE.replace("y.relu()", "y.gelu()"), encoding="utf-8")
            assert await jump(editor, root, NET["project"]) == (NET["project"] + 3, "same")
            assert await jump(editor, root, NET["relu"]) == (NET["relu"] + 3, "edited")
            resolved = await editor.command("resolvePath", path=str(program), line=NET["call"])
            assert resolved["line"] == NET["call"] + 3
            moved = NET["call"] + 3
            assert (await told_lines(editor, NET["call"]))["hotLines"] == {moved}
            program.rename(root / "moved.py")
            assert await jump(editor, root, NET["project"]) is None

    run(scenario())


def test_a_file_outside_the_workspace_is_not_read(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        outside = tmp_path / "outside.py"
        outside.write_text(ABOVE + SOURCE, encoding="utf-8")
        os.utime(record(root, file=str(outside)))
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            found = await editor.command("locate", file=str(outside), line=NET["project"])
            assert (found["uri"], found["line"]) == (outside.as_uri(), NET["project"])

    run(scenario())


def test_the_line_under_the_cursor_is_known_by_the_line_that_ran(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with looking_at(root / "train.py", tmp_path) as (editor, uri):
            editor.edit(uri, (0, 0), (0, 0), ABOVE)
            found = await editor.command("recordedLine", uri=uri, line=NET["project"] + 3)
            assert (found["file"], found["line"]) == (str(root / "train.py"), NET["project"])
            assert await editor.command("recordedLine", uri=uri, line=2) is None
            assert await editor.command("recordedLine", uri=(root / "other.py").as_uri(), line=2) is None

    run(scenario())


def test_a_file_that_is_not_here_has_its_recorded_text_and_is_found_where_the_user_says(
    root: Path, tmp_path: Path
) -> None:
    async def scenario() -> None:
        elsewhere = "/home/train/elsewhere/train.py"
        record(root, file=elsewhere)
        kept = tmp_path / "project" / "deep" / "down"
        kept.mkdir(parents=True)
        (root / "train.py").rename(kept / "train.py")
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            assert await editor.command("locate", file=elsewhere, line=NET["project"]) is None
            assert await editor.command("recordedText", file=elsewhere) == SOURCE
            assert await editor.command("recordedText", file="/etc/passwd") is None
            with pytest.raises(JsonRpcException, match=r"holds no train\.py"):
                await editor.command("mapFolder", file=elsewhere, folder=str(root))
            lesson = await editor.command("mapFolder", file=elsewhere, folder=str(kept))
            assert lesson == {"/home/train/elsewhere": str(kept)}
            found = await editor.command("locate", file=elsewhere, line=NET["project"])
            assert (found["uri"], found["line"]) == ((kept / "train.py").as_uri(), NET["project"])
        async with editing(root, cache=tmp_path / "cache") as editor:  # and it is remembered
            await editor.until_ready()
            assert await editor.command("locate", file=elsewhere, line=NET["project"]) is not None

    run(scenario())
