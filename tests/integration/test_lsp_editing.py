"""Right after the edit: numbers on a buffer that is being edited, through the protocol."""

import hashlib
import random
from pathlib import Path

from deepscope.records.source_files import source_lines
from lsp_editor import editing, run
from lsp_profiles import SOURCE, record


def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(SOURCE, encoding="utf-8")
    record(root)
    return root


def test_moved_lines_keep_edited_lines_are_marked_deleted_lines_vanish_undo_brings_all_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            original = await editor.hints(uri)
            editor.edit(uri, (0, 0), (0, 0), "# one\n# two\n")
            assert await editor.hints(uri) == {line + 2: label for line, label in original.items()}
            editor.edit(uri, (8, 17), (8, 21), "gelu")
            assert (await editor.hints(uri))[9] == original[7] + " (edited)"
            edited = (await editor.hover(uri, 9, 10)).splitlines()[0]
            assert (
                edited
                == "**Net.forward, line 9** (line 7 when recorded, edited): 15 µs per step, 7.5 % of the run's cost"
            )
            editor.edit(uri, (8, 0), (9, 0), "")
            assert set(await editor.hints(uri)) == {8, 12, 13}
            editor.edit(uri, (8, 0), (8, 0), "        return y.gelu()\n")
            editor.edit(uri, (8, 17), (8, 21), "relu")
            editor.edit(uri, (0, 0), (2, 0), "")
            assert await editor.hints(uri) == original

    run(scenario())


def test_edited_lines_can_be_hidden(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        async with editing(root, cache=tmp_path / "cache", settings={"changedLines": "hide"}) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            editor.edit(uri, (5, 24), (5, 24), "  # note")
            assert 6 not in await editor.hints(uri)
            assert await editor.hover(uri, 6, 10) == ""

    run(scenario())


def test_a_text_edited_before_it_is_opened_and_line_ends_of_windows(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            text = ("# unsaved\n" + SOURCE.replace("y.relu()", "y.tanh()")).replace("\n", "\r\n")
            uri = editor.open((root / "train.py").as_uri(), text)
            hints = await editor.hints(uri)
            assert hints[7] == "38 µs · 19 %"
            assert hints[8] == "15 µs · 7.5 % (edited)"

    run(scenario())


def test_letters_beyond_the_basic_plane_do_not_shift_an_edit(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open((root / "train.py").as_uri(), SOURCE + "s = '😀😀'\n")
            await editor.until_ready()
            last = SOURCE.count("\n")
            editor.edit(uri, (last, 7), (last, 9), "x")
            editor.edit(uri, (last, 0), (last, 9), "")
            editor.edit(uri, (last - 1, 0), (last - 1, 0), "")
            assert set(await editor.hints(uri)) == {6, 7, 11, 12}

    run(scenario())


def test_over_a_random_session_no_unmarked_hint_stands_on_another_text(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        recorded = source_lines(SOURCE)
        rng = random.Random(7)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            by_label = {label: recorded[line - 1] for line, label in (await editor.hints(uri)).items()}
            lines = list(recorded)
            for _ in range(60):
                first = rng.randrange(len(lines))
                last = min(len(lines) - 1, first + rng.randrange(4))
                fresh = [rng.choice([*recorded, "x = 1", "    y = 2"]) for _ in range(rng.randrange(4))]
                text = "".join(line + "\n" for line in fresh)
                editor.edit(uri, (first, 0), (last, 0), text)
                lines[first:last] = fresh
                for line, label in (await editor.hints(uri)).items():
                    if not label.endswith("(edited)"):
                        assert lines[line - 1] == by_label[label]

    run(scenario())


def test_a_renamed_and_a_moved_file_are_found_by_content(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = workspace(tmp_path)
        moved = root / "deep" / "renamed.py"
        moved.parent.mkdir()
        (root / "train.py").rename(moved)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(moved)
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            hot = await editor.command("hotLines", limit=1)
            assert hot["lines"][0]["uri"] == uri

    run(scenario())


def test_a_changed_file_known_by_its_hash_is_marked_until_its_text_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        root.mkdir()
        (root / "train.py").write_text("# changed\n" + SOURCE, encoding="utf-8")
        record(root, text=None, sha256=hashlib.sha256(SOURCE.encode()).hexdigest())
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "38 µs · 19 % (file changed since)"
            assert await editor.pull(uri) == []
            assert "by its hash it has changed since" in await editor.hover(uri, 6, 10)
            await editor.set({"changedLines": "hide"})
            assert await editor.hints(uri) == {}
            await editor.set({"changedLines": "mark"})
            before = editor.refreshes
            editor.edit(uri, (0, 0), (1, 0), "")
            await editor.until(lambda: editor.refreshes > before, "the recorded text is known again")
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert "the text is what ran" in await editor.hover(uri, 6, 10)
            editor.edit(uri, (0, 0), (0, 0), "# changed\n")
            assert (await editor.hints(uri))[7] == "38 µs · 19 %"  # from now on the lines are known

    run(scenario())


def test_a_file_newer_than_a_trace_without_texts_is_marked(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        root.mkdir()
        (root / "train.py").write_text(SOURCE, encoding="utf-8")
        record(root, text=None, recorded_at="2020-01-01T00:00:00+00:00")
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "38 µs · 19 % (file newer than trace)"
            assert await editor.pull(uri) == []
            assert "may have changed since" in await editor.hover(uri, 6, 10)

    run(scenario())
