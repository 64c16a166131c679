"""All that is open: workspace folders, documents and which profile each document shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from deepscope.records import Finding
from deepscope_lsp.answers import ResolvedPath
from deepscope_lsp.engine.binding import Binding, FileHere, Mark, bind, locate_in
from deepscope_lsp.engine.path_map import FileMatch, Locate, is_copy, parts_of
from deepscope_lsp.engine.project import Project, Remembered, hides
from deepscope_lsp.engine.settings import Settings
from deepscope_lsp.engine.source_files import Buffer, Splice, to_uri
from deepscope_lsp.engine.wording.hover import HoverContext


@dataclass
class Document:
    """One open text."""

    uri: str
    path: str | None
    """None for a cell of a notebook."""
    buffer: Buffer
    version: int | None = None
    project: Project | None = None
    """The one whose profile is shown in it."""
    binding: Binding | None = None

    def apply(self, splice: Splice) -> None:
        """Follows an edit that the buffer has seen."""
        if self.binding is not None:
            self.binding.spliced(splice)


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A document that may be one of several recorded files."""

    document: Document
    project: Project
    candidates: tuple[str, ...]


@dataclass
class EditorSession:
    """The state of one connection."""

    settings: Settings = field(default_factory=Settings)
    projects: list[Project] = field(default_factory=list)
    documents: dict[str, Document] = field(default_factory=dict)

    @property
    def roots(self) -> list[str]:
        """The workspace folders."""
        return [project.root for project in self.projects if project.root]

    def set_roots(self, roots: Sequence[str]) -> None:
        """Keeps what is known of folders that stay; with no folder at all, one project without one stands for it."""
        known = {project.root: project for project in self.projects}
        wanted = list(dict.fromkeys(roots)) or [""]
        self.projects = [known.get(root) or Project(root, Remembered(root), self.settings) for root in wanted]

    def open(self, document: Document) -> FileQuestion | None:
        """Takes a document in and finds out which recorded file it is; a question where two fare alike."""
        self.documents[document.uri] = document
        return self.rebind(document)

    def rebind(self, document: Document) -> FileQuestion | None:
        """Finds anew what a document shows."""
        before = document.binding.file.path if document.binding is not None else None
        document.binding = document.project = None
        question = None
        for project in self._by_nearness(document.path):
            match = self._match(project, document, before)
            if match.recorded is not None:
                self.bind(project, document, match.recorded)
                return None
            if match.candidates and question is None:
                question = FileQuestion(document, project, match.candidates)
        return question

    def bind(self, project: Project, document: Document, recorded: str) -> None:
        """Shows a recorded file's numbers in a document."""
        assert project.index is not None
        assert project.paths is not None
        document.project = project
        document.binding = bind(project.index, recorded, document.buffer, document.path)
        if document.path is not None:
            project.learn(project.paths.bind(recorded, document.path))

    def rebind_all(self) -> list[FileQuestion]:
        """After a profile, a folder or a mapping has changed; open questions are answered."""
        questions = [self.rebind(document) for document in self.documents.values()]
        return [question for question in questions if question is not None]

    def locate(self, project: Project) -> Locate:
        """Where recorded lines stand at this moment: URI and line. Each file is looked for once."""
        return locate_in(self.files_here(project))

    def files_here(self, project: Project) -> Callable[[str], FileHere | None]:
        """Recorded files as they are at this moment. Each is looked for once."""
        return cache(partial(self.file_here, project))

    def file_here(self, project: Project, recorded: str) -> FileHere | None:
        """A recorded file where it is open, else where it lies on disk; None where it is not here."""
        path = project.paths.local(recorded) if project.paths is not None else None
        opened = [
            (document, binding)
            for document in self.documents.values()
            if document.project is project and (binding := document.binding) and binding.file.path == recorded
        ]
        opened.sort(key=lambda pair: pair[0].path is not None and is_copy(pair[0].path, self.roots))
        for document, binding in opened:
            # A copy of the file may be open too: a link leads to where the file itself is.
            if document.path == path or path is None:
                return FileHere(document.uri, binding.map)
        if path is None or not os.path.isabs(path):  # noqa: PTH117
            return None
        return FileHere(to_uri(path), project.map_on_disk(recorded, path))

    def hover_context(self, document: Document, mark: Mark, findings: Sequence[Finding] = ()) -> HoverContext:
        """What hovers over a bound document say besides the numbers."""
        project, binding = document.project, document.binding
        assert project is not None
        assert binding is not None
        return HoverContext(
            index=binding.index,
            locate=self.locate(project),
            baseline=project.baseline,
            mark=mark,
            text_words=_text_words(binding),
            findings=findings,
        )

    def findings(self, document: Document) -> Iterator[tuple[int, Finding]]:
        """The findings of a document that are not hidden and whose lines are unchanged, each with its current line."""
        project, binding = document.project, document.binding
        if project is None or binding is None or binding.mark is not Mark.NONE:
            return
        for finding in binding.index.profile.findings:
            line = binding.map.line_of(finding.line) if finding.file == binding.file.path else None
            if line is not None and not self.is_hidden(project, finding.code, finding.file, finding.line):
                yield line, finding

    def is_hidden(self, project: Project, code: str, file: str, line: int) -> bool:
        """Whether a code is hidden everywhere, in this recorded file or on this line of it."""
        hidden = (*self.settings.hide, *project.remembered.memory.hidden)
        if not hidden or project.index is None:
            return False
        text = project.index.text_of(file, line)
        return any(hides(entry, code, file, text) for entry in hidden)

    def main_project(self) -> Project | None:
        """The project that is meant when nobody says which: the first that shows a profile."""
        return next((project for project in self.projects if project.index is not None), None)

    def _by_nearness(self, path: str | None) -> list[Project]:
        """Projects that show a profile: the folder that the file is in first, then the others."""
        shown = [project for project in self.projects if project.index is not None]
        if path is None:
            return shown
        inside = [
            project for project in shown if project.root and parts_of(path).below(parts_of(project.root)) is not None
        ]
        inside.sort(key=lambda project: -len(project.root))
        return inside + [project for project in shown if project not in inside]

    def _match(self, project: Project, document: Document, before: str | None) -> FileMatch:
        assert project.index is not None
        assert project.paths is not None
        match = project.paths.match(document.path, document.buffer.lines)
        if match.recorded is None and document.path is None:
            # A cell is known by its content alone, which may have been edited since the cell was found or picked.
            known = (project.picked.get(document.uri), before)
            match = next((FileMatch(one) for one in known if one is not None and one in project.index.files), match)
        return match


def _text_words(binding: Binding) -> str:
    if binding.mark is Mark.OTHER_TEXT:
        return "the trace has no text of this file, and by its hash it has changed since"
    if binding.mark is not Mark.NONE:
        return "the trace has no text of this file, and it may have changed since"
    if binding.map.is_unchanged:
        return "the text is what ran"
    edited = sum(1 for line in binding.file.lines if binding.map.line_of(line) is None)
    return (
        f"{edited} of {len(binding.file.lines)} measured lines edited since" if edited else "measured lines unchanged"
    )


def resolve_place(session: EditorSession, project: Project, path: str, line: int) -> ResolvedPath | None:
    """Where a path stands here; None where nothing here answers to it.

    A path is taken as recorded first. A relative one names the file of the trace that ends with it, if only one
    does, else a file below a workspace folder.
    """
    locate = session.locate(project)
    recorded = _recorded(project, path)
    if recorded is not None and (found := locate(recorded, line)) is not None:
        return _resolved(found, known=True)
    for root in session.roots:
        below = os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - an absolute path stands as it is
        inside = parts_of(below).below(parts_of(root)) is not None
        if inside and os.path.isfile(below):  # noqa: PTH113
            return _resolved(_open_line(session, below, line), known=False)
    elsewhere = locate(path, line)
    return None if elsewhere is None else _resolved(elsewhere, known=False)


def _resolved(found: tuple[str, int], *, known: bool) -> ResolvedPath:
    return ResolvedPath(uri=found[0], line=found[1], known=known)


def _recorded(project: Project, path: str) -> str | None:
    if project.index is None:
        return None
    wanted = parts_of(path)
    files = list(project.index.files)
    for file in files:
        if parts_of(file).folded == wanted.folded:
            return file
    if path.startswith("/") or wanted.is_windows:
        return None
    ending = [file for file in files if wanted.parts and parts_of(file).common_suffix(wanted) == len(wanted.parts)]
    return ending[0] if len(ending) == 1 else None


def _open_line(session: EditorSession, path: str, line: int) -> tuple[str, int]:
    """The line of a file that is open is where its recorded text stands now."""
    for document in session.documents.values():
        if document.path == path and document.binding is not None:
            return document.uri, document.binding.map.near(line)
    return to_uri(path), line
