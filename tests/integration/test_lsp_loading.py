"""Loads that are cancelled, overtaken, killed, or still under way when the editor goes."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_editor import PATIENCE, SERVER, Editor, begin, editing, run
from lsp_profiles import record

HELD = """
import os, sys, time

hold = os.environ["DEEPSCOPE_TEST_HOLD"]
while "deepscope.worker" in sys.orig_argv and os.path.exists(hold):
    time.sleep(0.005)
"""


@dataclass
class Hold:
    """While it is there, no process that reads a trace begins."""

    path: Path
    environment: dict[str, str]


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HELD, encoding="utf-8")
    path = tmp_path / "hold"
    path.touch()
    places = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return Hold(path, {"PYTHONPATH": os.pathsep.join(places), "DEEPSCOPE_TEST_HOLD": str(path)})


def name(number: int) -> str:
    return f"w.fit.rank0.{1_760_000_000_000_000_000 + number}.pt.trace.json"


def kind(progress: Any) -> str:
    return str(progress["kind"] if isinstance(progress, dict) else progress.kind)


def cancel_at_once(editor: Editor) -> None:
    def cancel(params: types.ProgressParams) -> None:
        if kind(params.value) == "begin":
            editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(params.token))

    editor.on_progress = cancel


def test_loading_shows_progress_and_can_be_cancelled(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            cancel_at_once(editor)
            await editor.until(
                lambda: any("cancelled" in one["message"] for one in editor.statuses), "the load is cancelled"
            )
            assert [kind(one) for one in editor.progress] == ["begin", "end"]
            editor.on_progress = lambda _: None
            hold.path.unlink()
            assert (await editor.command("reload"))["state"] == "ready"
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            assert editor.progress == []  # from the cache: nothing is read

    run(scenario())


def test_progress_of_a_small_trace_is_told_in_small_units(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        trace = record(root)
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            told = [one["message"] for one in editor.progress if kind(one) == "report"]
            assert told
            assert told[-1] == f"{trace.stat().st_size / 1024:.2f} KiB are read; working out what to show"

    run(scenario())


def test_a_folder_that_is_closed_while_its_trace_is_read_holds_up_no_other(
    root: Path, tmp_path: Path, hold: Hold
) -> None:
    async def scenario() -> None:
        record(root)
        other = tmp_path / "other"
        other.mkdir()
        async with editing(root, other, cache=tmp_path / "cache", environment=hold.environment) as editor:
            await editor.until(lambda: bool(editor.progress), "the trace is being read")
            closed = types.WorkspaceFoldersChangeEvent([], [types.WorkspaceFolder(root.as_uri(), "project")])
            editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(closed))
            await editor.until(lambda: kind(editor.progress[-1]) == "end", "nothing is read for it")
            await editor.until(lambda: editor.statuses[-1]["root"] == other.as_uri(), "the other folder is looked at")
            assert not [one for one in editor.statuses if "cancelled" in one["message"]]

    run(scenario())


def test_a_choice_that_is_cancelled_leaves_what_was_shown(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        old, new = record(root, name=name(1)), record(root, name=name(2), scale=2)
        hold.path.unlink()
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            hold.path.touch()
            cancel_at_once(editor)
            with pytest.raises(JsonRpcException, match="loading was cancelled"):
                await editor.command("selectTrace", path=str(old))
            assert (await editor.hints(uri))[6] == "76 µs · 19 %"
        async with editing(root, cache=tmp_path / "cache") as editor:
            assert (await editor.until_ready())["trace"]["path"] == str(new)

    run(scenario())


def test_a_later_choice_overtakes_one_that_is_still_loading(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        traces = [record(root, name=name(number), scale=number) for number in (1, 2, 3)]
        hold.path.unlink()
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            await editor.until_ready()
            await editor.command("selectTrace", path=str(traces[1]))  # in the cache from now on
            await editor.command("selectTrace")
            hold.path.touch()
            seen = len(editor.progress)
            first = asyncio.ensure_future(editor.command("selectTrace", path=str(traces[0])))
            await editor.until(lambda: len(editor.progress) > seen, "the first choice is being read")
            second = await editor.command("selectTrace", path=str(traces[1]))
            assert second["trace"]["path"] == str(traces[1])
            with pytest.raises(JsonRpcException, match="loading was cancelled"):
                await first
        async with editing(root, cache=tmp_path / "cache") as editor:
            assert (await editor.until_ready())["trace"]["path"] == str(traces[1])

    run(scenario())


def test_what_is_asked_for_takes_the_place_of_what_was_found(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        record(root, name=name(1))
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            await editor.until(lambda: bool(editor.progress), "the trace was found and is being read")
            reload = asyncio.ensure_future(editor.command("reload"))
            await editor.until(lambda: [kind(one) for one in editor.progress].count("begin") == 2, "it is read anew")
            hold.path.unlink()
            assert (await reload)["state"] == "ready"
            assert {one["state"] for one in editor.statuses} == {"loading", "ready"}
            assert not [one for one in editor.statuses if "cancelled" in one["message"]]
            ends = sorted(kind(one) for one in editor.progress if kind(one) != "report")
            assert ends == ["begin", "begin", "end", "end"]

    run(scenario())


def test_the_server_ends_at_once_in_the_middle_of_a_load(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            await editor.until(lambda: bool(editor.progress), "it is being read")
        assert editor.messages == []

    run(scenario())


def test_the_server_ends_in_the_middle_of_a_load_when_the_editor_dies(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        record(root)
        editor = Editor()
        env = {**os.environ, **hold.environment, "DEEPSCOPE_CACHE_DIR": str(tmp_path / "cache")}
        await editor.start_io(*SERVER, env=env)
        await begin(editor, root)
        await editor.until(lambda: bool(editor.progress), "it is being read")
        process = editor._server
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
        await editor.stop()

    run(scenario())


def test_what_is_typed_while_a_trace_loads_is_in_the_answer(root: Path, tmp_path: Path, hold: Hold) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache", environment=hold.environment) as editor:
            uri = editor.open(root / "train.py")
            await editor.until(lambda: bool(editor.progress), "it is being read")
            for number in range(200):
                editor.edit(uri, (0, 0), (0, 0), f"# typed {number}\n")
                assert await editor.hints(uri) == {}
            hold.path.unlink()
            await editor.until_ready()
            assert (await editor.hints(uri))[206] == "38 µs · 19 %"

    run(scenario())
