"""Notebooks: hints and hovers in the cells that ran."""

import os
from pathlib import Path

import pytest
from lsprotocol import types

from lsp_editor import Editor, editing, run
from trace_builder import TraceBuilder

CELL = "def forward(x):\n    a = x @ x\n    return a.relu()"
OLD = (1_760_000_000, 1_760_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "nötebook"
    (folder / "runs").mkdir(parents=True)
    return folder


def record_cells(folder: Path, *kernels: int) -> None:
    """The cell, run in one process or more; each takes 5 us more than the one before."""
    built = TraceBuilder()
    for number, kernel in enumerate(kernels):
        start = 1000 + 20_000 * number
        built.line(f"/tmp/ipykernel_{kernel}/99.py", 2, "forward", start, 9000)
        built.kernel("gemm", start + 1000, start + 2000, 5000 * (number + 1))
        built.files[number]["text"] = CELL
    os.utime(built.write(folder / "runs" / "w.pt.trace.json"), OLD)


class Notebook:
    """One notebook in the editor; its cells count from 0."""

    def __init__(self, editor: Editor, folder: Path, *texts: str) -> None:
        self._editor = editor
        self.uri = (folder / "n.ipynb").as_uri()
        self._texts = list(texts)
        self._version = 1
        self.cells = [f"{self.uri.replace('file:', 'vscode-notebook-cell:')}#W{number}" for number in range(len(texts))]

    def open(self) -> None:
        self._editor.notebook_document_did_open(
            types.DidOpenNotebookDocumentParams(
                types.NotebookDocument(
                    uri=self.uri,
                    notebook_type="jupyter-notebook",
                    version=1,
                    cells=[types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in self.cells],
                ),
                [item(uri, text) for uri, text in zip(self.cells, self._texts, strict=True)],
            )
        )

    def change(self, cells: types.NotebookDocumentCellChanges) -> None:
        self._version += 1
        self._editor.notebook_document_did_change(
            types.DidChangeNotebookDocumentParams(
                types.VersionedNotebookDocumentIdentifier(uri=self.uri, version=self._version),
                types.NotebookDocumentChangeEvent(cells=cells),
            )
        )

    def type_above(self, number: int, text: str) -> None:
        region = types.Range(types.Position(0, 0), types.Position(0, 0))
        edit = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(uri=self.cells[number], version=self._version + 1),
            [types.TextDocumentContentChangePartial(range=region, text=text)],
        )
        self.change(types.NotebookDocumentCellChanges(text_content=[edit]))

    def add(self, text: str) -> str:
        uri = f"{self.cells[0]}new"
        place = len(self.cells)
        self.cells.append(uri)
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(place, 0, [types.NotebookCell(types.NotebookCellKind.Code, uri)]),
            did_open=[item(uri, text)],
        )
        self.change(types.NotebookDocumentCellChanges(structure=structure))
        return uri

    def remove(self, number: int) -> str:
        uri = self.cells.pop(number)
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(number, 1), did_close=[types.TextDocumentIdentifier(uri)]
        )
        self.change(types.NotebookDocumentCellChanges(structure=structure))
        return uri


def item(uri: str, text: str) -> types.TextDocumentItem:
    return types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text)


def test_cells_of_a_notebook_have_hints_and_hovers(folder: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record_cells(folder, 1)
        async with editing(folder, cache=tmp_path / "cache") as editor:
            notebook = Notebook(editor, folder, "import torch", CELL)
            notebook.open()
            await editor.until_ready()
            assert await editor.hints(notebook.cells[0]) == {}
            assert await editor.hints(notebook.cells[1]) == {2: "9 µs · 100 %"}
            assert (await editor.hover(notebook.cells[1], 2, 6)).startswith("**forward, line 2**")
            (hot,) = (await editor.command("hotLines"))["lines"]
            assert hot["uri"] == notebook.cells[1]
            notebook.type_above(1, "# above\n")
            assert await editor.hints(notebook.cells[1]) == {3: "9 µs · 100 %"}
            added = notebook.add(CELL)
            assert await editor.hints(added) == {2: "9 µs · 100 %"}
            removed = notebook.remove(1)
            assert await editor.hints(removed) == {}

    run(scenario())


def test_an_edited_cell_keeps_its_numbers_when_all_is_looked_at_again(folder: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record_cells(folder, 1)
        async with editing(folder, cache=tmp_path / "cache") as editor:
            notebook = Notebook(editor, folder, CELL)
            notebook.open()
            await editor.until_ready()
            notebook.type_above(0, "".join(f"value_{number} = compute({number})\n" for number in range(9)))
            await editor.command("reload")
            await editor.set({"pathMappings": {"/elsewhere": "/here"}})
            assert await editor.hints(notebook.cells[0]) == {11: "9 µs · 100 %"}

    run(scenario())


def test_which_of_two_processes_a_cell_is_of_is_asked(folder: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        record_cells(folder, 1, 2)
        async with editing(folder, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            editor.pick = lambda _: types.MessageActionItem("/tmp/ipykernel_2/99.py")
            notebook = Notebook(editor, folder, CELL)
            before = editor.refreshes
            notebook.open()
            await editor.until(lambda: editor.refreshes > before, "the answer is taken")
            (question,) = editor.questions
            assert "nötebook/n.ipynb" in question.message
            titles = [one.title for one in question.actions or ()]
            assert titles == ["/tmp/ipykernel_1/99.py", "/tmp/ipykernel_2/99.py", "None of them"]
            assert await editor.hints(notebook.cells[0]) == {2: "12 µs · 38 %"}
            notebook.type_above(0, "# above\n")
            await editor.command("reload")
            assert await editor.hints(notebook.cells[0]) == {3: "12 µs · 38 %"}
            assert len(editor.questions) == 1

    run(scenario())
