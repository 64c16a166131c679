"""Every feature of the server through a real client over stdio, on a trace with known answers."""

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_editor import Editor, capabilities, editing, run
from lsp_profiles import SOURCE, record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "pröject with space"
    folder.mkdir()
    (folder / "train.py").write_text(SOURCE, encoding="utf-8")
    record(folder)
    return folder


def item(uri: str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri)


HINTS = {
    6: "38 µs · 19 %",
    7: "15 µs · 7.5 %",
    11: "17 µs · 8.5 % · calls 40 µs · 20 %",  # with "device idle" it were longer than VS Code shows
    12: "90 µs · 45 % · device idle",
}


async def started(editor: Editor, root: Path) -> str:
    uri = editor.open(root / "train.py")
    await editor.until_ready()
    return uri


def test_inlay_hints_for_the_requested_range_in_each_detail(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            assert await editor.hints(uri) == HINTS
            assert await editor.hints(uri, 6, 6) == {7: HINTS[7]}
            for detail, lines in (("off", set()), ("hot", {6, 11, 12}), ("all", set(HINTS))):
                editor.settings = {"inlayHints": detail, "threshold": 0.15}
                before = editor.refreshes
                editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
                await editor.until(lambda before=before: editor.refreshes > before, "settings are taken")
                assert set(await editor.hints(uri)) == lines

    run(scenario())


def test_hovers_on_lines_definitions_and_calls(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            line = await editor.hover(uri, 6, 10)
            assert line.startswith("**Net.forward, line 6**: 38 µs per step, 19 % of the run's cost\n\n")
            assert ("\n\n`aten::mm` → `sgemm`: 67 % of it\n\n|  | per step | share |\n| :-- | --: | --: |\n"
                    "| cost | 38 µs | 19 % of the run's cost |\n"
                    "| of it device, forward | 20 µs | 10 % of the run's cost |\n"
                    "| of it device, backward | 10 µs | 5.0 % of the run's cost |\n") in line  # fmt: skip
            assert f"- [train.py:11]({(root / 'train.py').as_uri()}#L11) train 30 µs" in line
            assert line.endswith(
                "Trace: w.fit.rank0.1760000000000000000.pt.trace.json, recorded 2026-01-02 03:04:05, stage fit, "
                "commit 0123456789 with changes; the text is what ran"
            )
            definition = await editor.hover(uri, 5, 9)
            assert definition.startswith("**Net.forward**: 53 µs per step")
            assert "| cost | 53 µs | 26 % of the run's cost |" in definition
            call = await editor.hover(uri, 11, 18)
            assert call.startswith("**Net.forward**: 53 µs per step")
            assert "---\n\n**train, line 11**: 17 µs per step" in call
            assert await editor.hover(uri, 1, 3) == ""

    run(scenario())


def test_code_lenses_over_functions_and_classes(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            lenses = await editor.text_document_code_lens_async(types.CodeLensParams(item(uri)))
            titles = {lens.range.start.line + 1: lens.command.title for lens in lenses or () if lens.command}
            assert titles[4] == "53 µs · 26 % in its methods"
            assert titles[5] == "40 µs · 20 %, cost 53 µs"
            assert titles[10] == "40 µs · 20 %, cost 107 µs"
            editor.settings = {"codeLens": False}
            before = editor.refreshes
            editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
            await editor.until(lambda: editor.refreshes > before, "settings are taken")
            assert not await editor.text_document_code_lens_async(types.CodeLensParams(item(uri)))

    run(scenario())


def test_diagnostics_are_pulled(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            found = {one.range.start.line + 1: one for one in await editor.pull(uri)}
            assert set(found) == {6, 7, 11, 12}
            assert (found[6].code, found[6].severity, found[6].source) == (
                "hot-line", types.DiagnosticSeverity.Hint, "DeepScope",
            )  # fmt: skip
            assert found[6].message.startswith(
                "Hot line: 19 % of the run's cost, 38 µs per step: device, forward 20 µs"
            )
            assert found[7].severity is types.DiagnosticSeverity.Hint
            assert found[6].range == types.Range(types.Position(5, 8), types.Position(5, 24))
            (caller,) = found[6].related_information or ()
            assert caller.location.range.start.line == 10
            assert caller.message == "called from train, 30 µs"
            idle = next(one for one in await editor.pull(uri) if one.code == "DS005")
            assert (idle.code, idle.severity) == ("DS005", types.DiagnosticSeverity.Warning)
            assert idle.message.startswith("Idle device: ")
            assert "Could save about" in idle.message
            assert "device idle 20 µs" in idle.message
            assert "Findings:\n\n- **Idle device**" in await editor.hover(uri, 12, 6)
            assert [one["code"] for one in await editor.command("findings")] == ["DS005"]
            assert not editor.diagnostics

    run(scenario())


def test_diagnostics_are_pushed_to_an_editor_that_does_not_pull(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache", client=capabilities(pull=False, refresh=False)) as editor:
            uri = await started(editor, root)
            await editor.until(
                lambda: len(editor.diagnostics.get(uri, ())) == 5, "four hot lines and a finding are pushed"
            )
            editor.edit(uri, (5, 24), (5, 24), "  # changed")
            await editor.until(lambda: len(editor.diagnostics[uri]) == 4, "the edited line loses its diagnostic")
            editor.text_document_did_close(types.DidCloseTextDocumentParams(item(uri)))
            await editor.until(lambda: not editor.diagnostics[uri], "a closed text has none")

    run(scenario())


def test_code_actions_hide_a_diagnostic_and_show_callers(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            hot = (await editor.pull(uri))[0]
            by_title = await editor.actions(uri, hot)
            callers = by_title["Show callers (DeepScope)"].command
            assert callers is not None
            editor.pick = lambda params: (params.actions or ())[0]
            answer = await editor.workspace_execute_command_async(
                types.ExecuteCommandParams(callers.command, callers.arguments)
            )
            assert len(answer) == 1
            await editor.until(lambda: bool(editor.shown), "the editor goes to the caller")
            assert editor.shown[0].uri == uri
            assert editor.shown[0].selection is not None
            assert editor.shown[0].selection.start.line == 10
            here = by_title["Hide hot-line on this line (DeepScope)"].command
            assert here is not None
            await editor.workspace_execute_command_async(types.ExecuteCommandParams(here.command, here.arguments))
            assert [(one.range.start.line + 1, one.code) for one in await editor.pull(uri)] == [
                (7, "hot-line"),
                (11, "hot-line"),
                (12, "DS005"),
                (12, "hot-line"),
            ]
            hide = by_title["Hide hot-line in this file (DeepScope)"].command
            assert hide is not None
            await editor.workspace_execute_command_async(types.ExecuteCommandParams(hide.command, hide.arguments))
            assert {one.code for one in await editor.pull(uri)} == {"DS005"}
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            assert {one.code for one in await editor.pull(uri)} == {"DS005"}
            assert await editor.command("unhideFindings") == [
                f"hot-line:{root.name}/train.py:y = self.proj(x)",
                f"hot-line:{root.name}/train.py",
            ]
            assert len(await editor.pull(uri)) == 5

    run(scenario())


def test_workspace_symbols_and_highlights(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            found = await editor.workspace_symbol_async(types.WorkspaceSymbolParams("nfwd"))
            assert [(one.name, one.location.range.start.line) for one in found or ()] == [("Net.forward", 4)]  # type: ignore[union-attr]
            asked = types.DocumentHighlightParams(item(uri), types.Position(6, 10))
            assert await editor.text_document_document_highlight_async(asked) is None  # the editor's own are shown
            await editor.set({"highlights": True})
            highlights = await editor.text_document_document_highlight_async(asked)
            assert [one.range.start.line + 1 for one in highlights or ()] == [7, 11]

    run(scenario())


def test_commands_answer_with_data(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = await started(editor, root)
            hot = await editor.command("hotLines", limit=2)
            assert hot["metric"] == "device"
            lines = [(one["line"], one["label"], one["uri"]) for one in hot["lines"]]
            assert lines == [(12, HINTS[12], uri), (6, HINTS[6], uri)]
            editor.edit(uri, (0, 0), (0, 0), "# moved\n")
            of_file = await editor.command("hotLines", uri=uri)
            assert [one["currentLine"] for one in of_file["lines"]][:2] == [13, 7]
            paths = await editor.command("callPaths")
            assert paths["roots"][0]["line"] == 11
            assert (await editor.command("modules"))["modules"] == []
            for path in (str(root / "train.py"), "train.py"):
                assert await editor.command("resolvePath", path=path, line=6) == {"uri": uri, "line": 7, "known": True}
            assert await editor.command("resolvePath", path="/no/such/thing.py") is None
            rows = await editor.command("annotations", uri=uri)
            assert [(row["line"], row["recordedLine"]) for row in rows] == [(7, 6), (8, 7), (12, 11), (13, 12)]
            (trace,) = await editor.command("listTraces")
            assert (trace["name"], trace["selected"]) == ("w.fit.rank0.1760000000000000000.pt.trace.json", True)
            assert (trace["rank"], trace["stage"], trace["commit"]) == (0, "fit", "0123456789abcdef")
            status = await editor.command("status")
            assert (status["trace"]["firstStep"], status["trace"]["lastStep"]) == (1, 1)
            assert (status["state"], status["trace"]["stage"], status["trace"]["deviceNs"]) == ("ready", "fit", 40_000)
            (caller,) = await editor.command("callers", uri=uri, line=7)
            assert (caller["line"], caller["currentLine"], caller["deviceNs"]) == (11, 12, 30_000)

    run(scenario())


def test_a_bad_argument_and_an_unknown_trace_are_errors_of_the_request(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            await started(editor, root)
            for name, argument, words in (
                ("hotLines", {"limit": "many"}, "Expected `int`"),
                ("hotLines", {"limmit": 3}, "unknown field `limmit`"),
                ("selectTrace", {"path": "missing"}, "no such file or folder"),
                ("status", {"root": "file:///elsewhere"}, "no such workspace folder"),
            ):
                with pytest.raises(JsonRpcException, match=words):
                    await editor.command(name, **argument)
            assert (await editor.command("status"))["state"] == "ready"

    run(scenario())


def test_bad_settings_are_named_once_and_the_defaults_used(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        options = {"inlayHints": "loud"}
        async with editing(root, cache=tmp_path / "cache", options=options) as editor:
            uri = await started(editor, root)
            assert set(await editor.hints(uri)) == set(HINTS)
            editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
            await editor.command("status")
            named = [message for message in editor.messages if "deepscope.inlayHints" in message]
            assert len(named) == 1

    run(scenario())
