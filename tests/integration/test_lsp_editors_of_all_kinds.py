"""Editors that can do little, that promise more than they do, and that say no."""

import os
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError

from lsp_editor import SERVER, Editor, begin, editing, run
from lsp_profiles import record
from trace_builder import TraceBuilder

REQUESTS = (
    types.WORKSPACE_CONFIGURATION,
    types.CLIENT_REGISTER_CAPABILITY,
    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
    types.WINDOW_SHOW_MESSAGE_REQUEST,
    types.WORKSPACE_INLAY_HINT_REFRESH,
    types.WORKSPACE_CODE_LENS_REFRESH,
    types.WORKSPACE_DIAGNOSTIC_REFRESH,
)


def refuse(editor: Editor) -> None:
    """From now on everything that the server asks is answered with an error."""

    def refused(_: Any) -> None:
        raise JsonRpcInternalError("not in this editor")

    for method in REQUESTS:
        editor.protocol.fm._features[method] = refused


def test_an_editor_that_refuses_everything_still_has_its_numbers(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        editor = Editor()
        refuse(editor)
        env = {**os.environ, "DEEPSCOPE_CACHE_DIR": str(tmp_path / "cache")}
        await editor.start_io(*SERVER, env=env)
        await begin(editor, root, options={"threshold": 0.15})
        uri = editor.open(root / "train.py")
        await editor.until_ready()
        assert set(await editor.hints(uri)) == {6, 11, 12}  # the options hold where nothing else is told
        assert editor.progress == []
        assert editor.messages == []
        await editor.command("showCallers", uri=uri, line=6)
        assert (await editor.command("status"))["state"] == "ready"
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()

    run(scenario())


def test_an_editor_with_no_capabilities_at_all(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache", client=types.ClientCapabilities()) as editor:
            uri = editor.open(root / "train.py")
            await editor.until(lambda: len(editor.diagnostics.get(uri, ())) == 5, "diagnostics are pushed")
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert (editor.progress, editor.questions, editor.registered, editor.refreshes) == ([], [], [], 0)
            pushed = {"deepscope": {"inlayHints": "off", "diagnostics": "findings"}}
            editor.workspace_did_change_configuration(types.DidChangeConfigurationParams(pushed))
            await editor.until(lambda: len(editor.diagnostics[uri]) == 1, "pushed settings are taken")
            assert await editor.hints(uri) == {}

    run(scenario())


def test_the_server_offers_what_is_documented(root: Path, tmp_path: Path, repository: Path) -> None:
    async def scenario() -> None:
        editor = Editor()
        env = {**os.environ, "DEEPSCOPE_CACHE_DIR": str(tmp_path / "cache")}
        await editor.start_io(*SERVER, env=env)
        offered = (await begin(editor, root)).capabilities
        page = (repository / "docs" / "lsp.md").read_text(encoding="utf-8")
        assert offered.execute_command_provider is not None
        assert offered.execute_command_provider.commands
        for command in offered.execute_command_provider.commands:
            assert f"| `{command}` |" in page
        assert page.count("| `deepscope.") == len(offered.execute_command_provider.commands)
        assert offered.text_document_sync is not None
        assert offered.notebook_document_sync is not None
        for provider in ("inlay_hint", "code_lens", "hover", "diagnostic", "code_action", "workspace_symbol",
                         "document_highlight"):  # fmt: skip
            assert getattr(offered, f"{provider}_provider"), provider
        await editor.shutdown_async(None)
        editor.exit(None)
        await editor.stop()

    run(scenario())


def test_no_text_of_a_trace_becomes_a_link_in_a_message(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        evil = "[run](command:workbench.action.terminal.new)"
        built = TraceBuilder(deepscope={"version": "0", "stage": evil, "run_id": "r"})
        built.line(str(root / "train.py"), 6, "f", 1000, 9000)
        built.kernel("gemm", 2000, 3000, 5000)
        (root / "runs").mkdir()
        built.write(root / "runs" / "[run](command:x).1760000000000000000.pt.trace.json")
        async with editing(root, cache=tmp_path / "cache", settings={"show": {"stage": "fit"}}) as editor:
            await editor.until(lambda: bool(editor.messages), "the stage is not there")
            with pytest.raises(JsonRpcException):
                await editor.command("selectTrace", path="[run](command:y).pt.trace.json")
            await editor.set({})
            await editor.until_ready()
            told = [*editor.messages, *map(str, editor.progress), *(one.message for one in editor.questions)]
            assert any("command:" in one for one in told)
            assert not [one for one in told if "](command:" in one]

    run(scenario())
