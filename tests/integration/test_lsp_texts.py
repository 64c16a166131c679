"""Odd texts and odd ways to open, change and close them."""

from pathlib import Path

import pytest
from lsprotocol import types

from lsp_editor import capabilities, editing, run
from lsp_profiles import SOURCE, record
from trace_builder import TraceBuilder

LABEL = "9 µs · 100 %"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "日本 folder %20#?"
    folder.mkdir()
    return folder


def record_line(root: Path, text: str, line: int, file: str = "träin 😀.py") -> Path:
    """A trace in which one line of a text takes all the time, and the file beside it."""
    path = root / file
    path.write_bytes(text.encode())
    built = TraceBuilder(deepscope={"version": "0", "project_root": str(root)})
    built.line(str(path), line, "f", 1000, 9000)
    built.kernel("gemm", 2000, 3000, 5000)
    built.files[0]["text"] = text
    (root / "runs").mkdir(exist_ok=True)
    built.write(root / "runs" / "w.1760000000000000000.pt.trace.json")
    return path


def whole(text: str) -> types.TextDocumentContentChangeWholeDocument:
    return types.TextDocumentContentChangeWholeDocument(text=text)


@pytest.mark.parametrize(
    ("text", "line", "start", "end"),
    [
        ("a = 1\n    s = '😀é'; y = x @ w  # 😀\n", 2, 4, 30),
        ("\ty = x @ w\t \n", 1, 1, 10),
        ("a = 1\r\ny = x @ w\r\n", 2, 0, 9),
        ("a = 1\ry = x @ w", 2, 0, 9),
        ("a = 1\n\f\ny = x @ w", 3, 0, 9),
        ("s = '\x1c\u2028\x85'; y = x @ w\n", 1, 0, 20),
    ],
    ids=["emoji", "tabs", "crlf", "cr", "form feed", "separators"],
)
def test_positions_are_those_of_the_protocol(
    root: Path, tmp_path: Path, text: str, line: int, start: int, end: int
) -> None:
    async def scenario() -> None:
        path = record_line(root, text, line)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(path.as_uri(), text)
            await editor.until_ready()
            region = types.Range(types.Position(0, 0), types.Position(99, 0))
            (hint,) = (
                await editor.text_document_inlay_hint_async(
                    types.InlayHintParams(types.TextDocumentIdentifier(uri), region)
                )
                or ()
            )
            assert hint.position == types.Position(line - 1, end)
            (diagnostic,) = await editor.pull(uri)
            assert diagnostic.range == types.Range(types.Position(line - 1, start), types.Position(line - 1, end))
            assert (await editor.hover(uri, line, end - 1)).startswith(f"**f, line {line}**")

    run(scenario())


def test_an_emptied_text_a_whole_new_one_and_one_without_a_last_line_end(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        text = "a = 1\ny = x @ w"
        path = record_line(root, text, 2)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(path.as_uri(), "")
            await editor.until_ready()
            assert await editor.hints(uri) == {}
            version = 1
            for now, shown in (
                (text, {2: LABEL}),
                ("", {}),
                ("# above\n" + text + "\n", {3: LABEL}),
                ("y = x @ w", {1: LABEL}),
                ("\n\n\n", {}),
                ("y = x @ w2\n", {1: f"{LABEL} (edited)"}),
                (text, {2: LABEL}),
            ):
                version += 1
                identifier = types.VersionedTextDocumentIdentifier(uri=uri, version=version)
                editor.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [whole(now)]))
                assert await editor.hints(uri) == shown, now

    run(scenario())


def test_an_edit_at_the_end_of_a_text_without_a_last_line_end(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = record_line(root, "a = 1\ny = x @ w", 2)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(path)
            await editor.until_ready()
            editor.edit(uri, (1, 9), (1, 9), "\nb = 2")
            assert await editor.hints(uri) == {2: LABEL}
            editor.edit(uri, (1, 9), (1, 9), "0")
            assert await editor.hints(uri) == {2: f"{LABEL} (edited)"}
            editor.edit(uri, (1, 9), (2, 5), "")
            assert await editor.hints(uri) == {2: LABEL}

    run(scenario())


def test_closing_and_opening_again_and_under_another_name(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = record_line(root, "a = 1\ny = x @ w\nb = compute(y)\n", 2)
        text = path.read_text(encoding="utf-8")
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(path)
            await editor.until_ready()
            for _ in range(20):
                editor.edit(uri, (0, 0), (0, 0), "# typed\n")
                editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
                assert await editor.hints(uri) == {}
                editor.open(path)
                assert await editor.hints(uri) == {2: LABEL}
            editor.open(uri, "# opened twice\n" + text)
            assert await editor.hints(uri) == {3: LABEL}
            editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
            renamed = path.with_name("renamed.py")
            path.rename(renamed)
            again = editor.open(renamed.as_uri(), "# edited\n" + text)
            assert await editor.hints(again) == {3: LABEL}

    run(scenario())


def test_a_file_that_is_renamed_by_the_editor_keeps_its_unsaved_edits(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = record_line(root, SOURCE, 6)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(path)
            await editor.until_ready()
            editor.edit(uri, (0, 0), (0, 0), "# typed\n")
            renamed = path.with_name("elsewhere.py")
            path.rename(renamed)
            editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
            again = editor.open(renamed.as_uri(), "# typed\n" + SOURCE)
            assert await editor.hints(again) == {7: LABEL}
            (line,) = (await editor.command("hotLines"))["lines"]
            assert (line["uri"], line["currentLine"]) == (again, 7)

    run(scenario())


@pytest.mark.parametrize("pull", [True, False])
def test_diagnostics_come_one_way_only(root: Path, tmp_path: Path, pull: bool) -> None:
    async def scenario() -> None:
        record(root)
        (root / "train.py").write_text(SOURCE, encoding="utf-8")
        async with editing(root, cache=tmp_path / "cache", client=capabilities(pull=pull)) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            editor.edit(uri, (0, 0), (0, 0), "# typed\n")
            if pull:
                assert [one.range.start.line for one in await editor.pull(uri)] == [6, 7, 11, 12, 12]
                assert editor.diagnostics == {}
            else:
                await editor.until(
                    lambda: [one.range.start.line for one in editor.diagnostics.get(uri, ())] == [6, 7, 11, 12, 12],
                    "they are pushed after the edit",
                )

    run(scenario())


@pytest.mark.parametrize("encoding", [types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf32])
def test_other_units_of_columns_are_used_where_the_editor_offers_them(
    root: Path, tmp_path: Path, encoding: types.PositionEncodingKind
) -> None:
    async def scenario() -> None:
        text = "s = '😀é'; y = x @ w\n"
        path = record_line(root, text, 1)
        client = capabilities()
        client.general = types.GeneralClientCapabilities(position_encodings=[encoding])
        async with editing(root, cache=tmp_path / "cache", client=client) as editor:
            uri = editor.open(path)
            await editor.until_ready()
            (diagnostic,) = await editor.pull(uri)
            body = text.rstrip()
            size = len(body.encode()) if encoding is types.PositionEncodingKind.Utf8 else len(body)
            assert diagnostic.range.end.character == size

    run(scenario())
