"""Hostile, broken and huge input: one clear message, and the server stays up and answers."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from deepscope.records import Edit, Finding, Remedy
from deepscope.store import cache as profile_cache
from deepscope.store.files import single_file
from lsp_editor import PATIENCE, Editor, capabilities, editing, run
from lsp_profiles import SOURCE, make_profile, record
from trace_builder import TraceBuilder

OLD = (1_760_000_000, 1_760_000_000)


def spoiled(root: Path, content: bytes, name: str = "bad.1770000000000000000.pt.trace.json") -> Path:
    path = root / "deepscope_logs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, OLD)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur"',
        b'{"traceEvents": ' + b"[" * 100_000,
    ],
    ids=["cut", "deep"],
)
def test_a_corrupt_trace_is_one_message_and_the_older_one_is_shown(root: Path, tmp_path: Path, content: bytes) -> None:
    async def scenario() -> None:
        record(root)
        bad = spoiled(root, content)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert len(editor.messages) == 1
            assert bad.name in editor.messages[0]
            assert "Traceback" not in editor.messages[0]
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"

    run(scenario())


def test_with_nothing_but_a_corrupt_trace_the_server_answers(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        spoiled(root, b"[]")
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until(lambda: any(one["state"] == "error" for one in editor.statuses), "the error is told")
            assert await editor.hints(uri) == {}
            assert await editor.hover(uri, 6, 10) == ""
            assert (await editor.command("status"))["state"] == "error"
            record(root, name="good.1780000000000000000.pt.trace.json")
            assert (await editor.command("reload"))["state"] == "ready"

    run(scenario())


def test_names_in_a_trace_are_shown_as_their_letters(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        file = str(root / "train.py")
        evil = "[run](command:workbench.action.terminal.new) <img src=x onerror=alert(1)> `"
        built = TraceBuilder()
        built.step(1, 0, 100_000)
        built.line(file, 11, evil, 1000, 50_000)
        built.line(file, 6, evil, 2000, 20_000)
        built.op(evil, 2500, 1000)
        built.kernel(evil, 3000, 4000, 30_000)
        built.files[0]["text"] = SOURCE
        (root / "runs").mkdir()
        os.utime(built.write(root / "runs" / "evil.pt.trace.json"), OLD)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            hover = await editor.hover(uri, 6, 10)
            for text in (hover, await editor.hover(uri, 11, 6)):
                outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
                assert "](command:" not in outside_code.replace(r"\](command:", "")
                assert "<img" not in outside_code.replace(r"\<img", "")
            assert r"\[run\](command:" in hover
            assert f"`` {evil} ``" in hover
            found = await editor.text_document_hover_async(
                types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(5, 10))
            )
            assert found is not None
            assert found.contents.kind is types.MarkupKind.Markdown

    run(scenario())


def test_files_that_a_trace_names_are_not_read(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        secret = tmp_path / "secret.txt"
        secret.write_text("the secret words\n" * 20, encoding="utf-8")
        built = TraceBuilder()
        built.line(str(secret), 3, "f", 1000, 9000)
        built.kernel("k", 2000, 3000, 5000)
        (root / "runs").mkdir()
        os.utime(built.write(root / "runs" / "w.pt.trace.json"), OLD)
        async with editing(root, cache=tmp_path / "cache") as editor:
            editor.open(root / "train.py")
            await editor.until_ready()
            for name in ("hotLines", "callPaths"):
                assert "secret words" not in json.dumps(await editor.command(name))

    run(scenario())


def test_messages_that_make_no_sense_are_answered_or_ignored(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            editor.edit(uri, (999, 5), (2000, 0), "x")
            editor.edit(uri, (3, 9), (1, 0), "")
            unknown = types.VersionedTextDocumentIdentifier(uri="file:///never/opened.py", version=3)
            change = types.TextDocumentContentChangeWholeDocument(text="x")
            editor.text_document_did_change(types.DidChangeTextDocumentParams(unknown, [change]))
            assert await editor.hints("file:///never/opened.py") == {}
            assert await editor.hover(uri, 5000) == ""
            assert (await editor.hints(uri, 5, 99_999_999))[6] == "38 µs · 19 %"
            editor.protocol.notify("no/such/notification", {"a": 1})
            for odd in (
                "untitled:Untitled-1",
                "file://%zz/x",
                "file:///a%00b",
                "vscode-notebook-cell:x#1",
                "http://[bad",
            ):
                odd_uri = editor.open(odd, "x = 1\n")
                assert await editor.hints(odd_uri) == {}

    run(scenario())


IMPOSSIBLE: list[Any] = [
    {"line": -1, "character": -7},
    {"line": 2**32, "character": 0},
    {"line": 0, "character": 2**32},
    {"line": 10**30, "character": 0},
    {"line": "x", "character": None},
    None,
    {},
    [1, 2],
]


def impossible_requests(uri: str, position: Any) -> list[tuple[str, Any]]:
    document, start = {"uri": uri}, {"line": 0, "character": 0}
    region, wrong_way = {"start": start, "end": position}, {"start": position, "end": start}
    context: dict[str, Any] = {"diagnostics": []}
    return [
        ("textDocument/hover", {"textDocument": document, "position": position}),
        ("textDocument/documentHighlight", {"textDocument": document, "position": position}),
        ("textDocument/inlayHint", {"textDocument": document, "range": region}),
        ("textDocument/inlayHint", {"textDocument": document, "range": wrong_way}),
        ("textDocument/codeAction", {"textDocument": document, "range": region, "context": context}),
        ("textDocument/codeLens", {"textDocument": position}),
    ]


def test_requests_with_impossible_parameters_are_answered_and_the_server_lives_on(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        log = tmp_path / "stderr"
        server = ("sh", "-c", f"exec {shlex.quote(sys.executable)} -m deepscope_lsp 2> {shlex.quote(str(log))}")
        async with editing(root, cache=tmp_path / "cache", command=server) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            for position in IMPOSSIBLE:
                for method, params in impossible_requests(uri, position):
                    with pytest.raises(JsonRpcException, match=method):
                        await editor.send_raw(method, params)
                for method, params in (
                    ("workspace/symbol", {"query": position}),
                    ("workspace/executeCommand", {"command": position}),
                ):
                    with contextlib.suppress(JsonRpcException):
                        await editor.send_raw(method, params)
                assert (await editor.hints(uri))[6] == "38 µs · 19 %", position
        assert "Traceback" not in log.read_text()

    run(scenario())


@pytest.mark.parametrize("line", [0, 2**31, 10**15])
def test_a_trace_may_name_lines_that_no_file_has(root: Path, tmp_path: Path, line: int) -> None:
    async def scenario() -> None:
        file = str(root / "train.py")
        built = TraceBuilder()
        built.line(file, line, "Net.forward", 2000, 20_000, first_line=line)
        built.kernel("k", 3000, 4000, 30_000)
        (root / "runs").mkdir()
        os.utime(built.write(root / "runs" / "w.pt.trace.json"), OLD)
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            await editor.workspace_symbol_async(types.WorkspaceSymbolParams("forward"))
            (first, *_) = (await editor.command("hotLines"))["lines"]
            assert "Net.forward" in first["function"]
            assert first["currentLine"] is None or 1 <= first["currentLine"] < 2**31

    run(scenario())


ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("resolvePath", {"path": "train.py", "line": 2**31}),
    ("resolvePath", {"path": "train.py", "line": 10**18}),
    ("callers", {"file": "train.py", "line": 10**18}),
    ("hotLines", {"limit": -1}),
    ("hotLines", {"limit": "3"}),
    ("hotLines", {"root": "file://[bad"}),
    ("callPaths", {"minShare": 7}),
    ("linePaths", {"file": "train.py", "line": 10**18}),
    ("selectTrace", {"path": "\0"}),
    ("selectTrace", {"path": "a" * 5000}),
    ("setBaseline", {"path": "::"}),
    ("hideFinding", {"code": "x", "file": "\0", "line": 10**18}),
    ("annotations", {"uri": "file://[bad"}),
]


def test_a_command_with_impossible_arguments_is_answered(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            for name, argument in ARGUMENTS:
                with contextlib.suppress(JsonRpcException):
                    await asyncio.wait_for(editor.command(name, **argument), PATIENCE)
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert not [one for one in editor.logs if "Error:" in one]

    run(scenario())


def test_a_place_that_no_file_system_has_does_not_end_the_looking(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record(root)
        async with editing(root, cache=tmp_path / "cache", settings={"traces": ["a\0b", "deepscope_logs"]}) as editor:
            await editor.until_ready()

    run(scenario())


def test_a_folder_of_a_thousand_traces(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = record(root, name="w.fit.rank0.1760000000000000000.pt.trace.json")
        content = first.read_bytes()
        for number in range(1, 1000):
            spoiled(root, content, f"w.fit.rank0.{1_760_000_000_000_000_000 + number}.pt.trace.json")
        async with editing(root, cache=tmp_path / "cache") as editor:
            status = await editor.until_ready()
            assert status["trace"]["path"].endswith(".1760000000000000999.pt.trace.json")
            assert len(await editor.command("listTraces", limit=1000)) == 1000

    run(scenario())


def keep(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, findings: list[Finding], text: str) -> None:
    """Puts a profile with these findings into the cache, in the place of the trace's own."""
    found = single_file(str(record(root, text=text)))
    assert found is not None
    profile = make_profile(str(root / "train.py"), text=text, root=str(root))
    profile.findings = findings
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(cache))
    profile_cache.save(found, profile, partial=False)


def finding(root: Path, edits: list[Edit]) -> Finding:
    return Finding(
        code="DS001", title="Device sync", severity="warning", file=str(root / "train.py"), line=12, message="waits",
        evidence={"wait_ns": 2_000_000, "waits": 4}, saving_ns=2_000_000, remedy=Remedy("Keep it.", edits), doc="",
    )  # fmt: skip


async def titles(editor: Editor, uri: str) -> set[str]:
    (diagnostic,) = [one for one in await editor.pull(uri) if one.code == "DS001"]
    return set(await editor.actions(uri, diagnostic))


APPLY = "Device sync: apply the remedy (DeepScope)"


def test_a_mechanical_remedy_is_an_edit_of_the_line_as_it_stands_now(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            editor.edit(uri, (0, 0), (0, 0), "# above\n")
            (diagnostic,) = [one for one in await editor.pull(uri) if one.code == "DS001"]
            assert diagnostic.message == "Device sync: waits. Could save up to 1 ms per step. (wait 1 ms, waits 4)"
            edit = (await editor.actions(uri, diagnostic))[APPLY].edit
            assert edit is not None
            assert edit.changes is not None
            (change,) = edit.changes[uri]
            assert change.new_text == "detach()"
            assert change.range == types.Range(types.Position(12, 9), types.Position(12, 19))
            editor.edit(uri, (12, 19), (12, 19), "  # edited")
            assert not [one for one in await editor.pull(uri) if one.code == "DS001"]

    keep(root, tmp_path / "cache", monkeypatch, [finding(root, [Edit(12, "backward()", "detach()")])], SOURCE)
    run(scenario())


@pytest.mark.parametrize("edits", [[], [Edit(12, "no such text", "x")], [Edit(12, "loss", "x"), Edit(99, "a", "b")]])
def test_no_edit_is_offered_that_does_not_fit_as_a_whole(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: list[Edit]
) -> None:
    async def scenario() -> None:
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            found = await titles(editor, uri)
            assert APPLY not in found
            assert "Hide DS001 everywhere (DeepScope)" in found

    keep(root, tmp_path / "cache", monkeypatch, [finding(root, edits)], SOURCE)
    run(scenario())


def test_a_question_is_asked_where_two_files_fare_alike_and_the_answer_remembered(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        text = SOURCE + "\n# as recorded\n"
        built = TraceBuilder()
        for number, folder in enumerate(("a", "b")):
            built.line(f"/cluster/{folder}/train.py", 6, "Net.forward", 1000 + 20_000 * number, 9000)
            built.kernel("k", 2000 + 20_000 * number, 3000 + 20_000 * number, 5000 * (number + 1))
            built.files[number]["text"] = text
        (root / "runs").mkdir()
        os.utime(built.write(root / "runs" / "w.pt.trace.json"), OLD)
        async with editing(root, cache=tmp_path / "cache", client=capabilities()) as editor:
            await editor.until_ready()
            picked = types.MessageActionItem("/cluster/b/train.py")
            editor.pick = lambda _: picked
            uri = editor.open(root / "train.py")
            await editor.until(lambda: editor.refreshes > 3, "the answer is taken")
            (question,) = editor.questions
            assert [one.title for one in question.actions or ()] == [
                "/cluster/a/train.py", "/cluster/b/train.py", "None of them",
            ]  # fmt: skip
            assert (await editor.hints(uri))[6] == "12 µs · 38 %"
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "12 µs · 38 %"
            assert editor.questions == []

    run(scenario())
