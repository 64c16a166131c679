"""Commands by `workspace/executeCommand`; each takes one optional object, described in docs/lsp.md."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from deepscope.errors import DeepScopeError, NoTraceError
from deepscope.printable import printable, without_secrets
from deepscope.store.runs import FoundTrace
from deepscope.store.selection import TraceSelection
from deepscope.trace.kineto.remote import is_url
from deepscope_lsp import answers, arguments
from deepscope_lsp.engine.call_paths import call_paths, line_paths
from deepscope_lsp.engine.discovery import find_traces, listed_trace, resolve_places, run_of, runs_of
from deepscope_lsp.engine.hot_lines import hot_lines, hot_modules, numbers_of
from deepscope_lsp.engine.path_map import parts_of
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.project import hiding_entry
from deepscope_lsp.engine.session import resolve_place
from deepscope_lsp.engine.settings import in_settings
from deepscope_lsp.engine.source_files import to_path
from deepscope_lsp.engine.status import status_of, try_command
from deepscope_lsp.engine.wording.annotation import annotate
from deepscope_lsp.engine.wording.findings import finding_words
from deepscope_lsp.features import loading
from deepscope_lsp.features.editor_requests import rebind_all, refresh, tell_status
from deepscope_lsp.features.symbols import callers, show_callers
from deepscope_lsp.server import HIDE_FINDING, SHOW_CALLERS, SHOW_TRY_COMMAND

if TYPE_CHECKING:
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.features.watching import Watcher
    from deepscope_lsp.server import DeepScopeServer


def measured_lines(server: DeepScopeServer, document: Document) -> list[answers.AnnotatedLine]:
    """The lines as they stand now."""
    binding = document.binding
    if binding is None:
        return []
    with_changed = server.session.settings.changed_lines == "mark"
    scales = binding.index.scales
    found = []
    for shown in binding.shown_between(1, len(document.buffer.lines), with_changed=with_changed):
        note = annotate(shown.record, scales)
        found.append(
            answers.AnnotatedLine(
                line=shown.line,
                recorded_line=shown.record.line,
                function=shown.record.function,
                label=note.label,
                tooltip=note.tooltip,
                share=scales.costs.share(shown.record),
                weight=note.weight,
                mark=shown.mark.value,
                numbers=numbers_of(shown.record),
            )
        )
    return found


REQUEST_FAILED = -32803
"""The protocol's RequestFailed: a request that was understood and cannot be met."""


class Commands:
    """What each command does."""

    def __init__(self, server: DeepScopeServer, watcher: Watcher) -> None:
        self._server = server
        self._watcher = watcher

    async def hot_lines(self, argument: arguments.HotLinesArgument) -> answers.HotLines:
        """The hottest lines of the trace, or of one open document."""
        project, index = self._shown(argument)
        files, baseline = None, project.baseline
        if argument.uri is not None:
            document = self._server.document(argument.uri)
            files = set()
            if document is not None and document.binding is not None and document.project is not None:
                project, index, baseline = document.project, document.binding.index, document.project.baseline
                files = {document.binding.file.path}
        here = self._server.session.files_here(project)
        return hot_lines(index, here, limit=argument.limit, files=files, baseline=baseline)

    async def call_paths(self, argument: arguments.CallPathsArgument) -> answers.CallPaths:
        """The call tree with own and total times."""
        project, index = self._shown(argument)
        return call_paths(
            index, self._server.session.locate(project), min_share=argument.min_share, depth=argument.depth
        )

    async def line_paths(self, argument: arguments.LinePathsArgument) -> answers.LinePaths:
        """Who calls a line, what it calls and what its work is made of, on all paths."""
        project, index = self._shown(argument)
        locate = self._server.session.locate(project)
        return line_paths(index, locate, argument.file, argument.line, depth=argument.depth)

    async def modules(self, argument: arguments.HotModulesArgument) -> answers.HotModules:
        """The modules with the most device time."""
        return hot_modules(self._shown(argument)[1], limit=argument.limit)

    async def findings(self, argument: arguments.Where) -> list[answers.FoundFinding]:
        """All findings that are not hidden, the largest saving first, also those of no line."""
        project, index = self._shown(argument)
        locate = self._server.session.locate(project)
        found = []
        for finding in index.profile.findings:
            if not self._server.session.is_hidden(project, finding.code, finding.file, finding.line):
                uri, line = (locate(finding.file, finding.line) if finding.file else None) or (None, None)
                words = finding_words(finding, index.scales, index.profile.tries)
                fields = msgspec.structs.asdict(finding)
                found.append(answers.FoundFinding(**fields, uri=uri, current_line=line, words=words))
        return found

    async def resolve_path(self, argument: arguments.ResolveArgument) -> answers.ResolvedPath | None:
        """Where a path stands here that a trace or a dashboard names."""
        return resolve_place(self._server.session, self._project(argument), argument.path, argument.line)

    async def locate(self, argument: arguments.RecordedPlaceArgument) -> answers.Located | None:
        """Where a recorded line stands at this moment, and whether it is what ran; null where its file is not here."""
        project, _ = self._shown(argument)
        here = self._server.session.file_here(project, argument.file)
        if here is None:
            return None
        return answers.Located(uri=here.uri, line=here.near(argument.line), standing=here.standing(argument.line))

    async def recorded_line(self, argument: arguments.TextPlaceArgument) -> answers.RecordedLine | None:
        """The recorded line that a line of an open document is, unchanged or edited; null for one that did not run."""
        document = self._server.document(argument.uri)
        binding = document.binding if document is not None else None
        home = binding.recorded_line(argument.line) if binding is not None else None
        return None if binding is None or home is None else answers.RecordedLine(file=binding.file.path, line=home)

    async def recorded_text(self, argument: arguments.RecordedTextArgument) -> str | None:
        """A file as it ran; null where the trace has no text of it."""
        source = self._shown(argument)[1].profile.files.get(argument.file)
        return None if source is None else source.text

    async def map_folder(self, argument: arguments.MapFolderArgument) -> dict[str, str]:
        """Finds a recorded file in a folder from now on, and what lay beside it; answers what was learnt."""
        project, _ = self._shown(argument)
        paths = project.paths
        lesson = paths.mapping_to(argument.file, argument.folder) if paths is not None else {}
        if not lesson:
            name = parts_of(argument.file).parts[-1]
            raise NoTraceError(
                f"{argument.folder}: holds no {name}, neither by itself nor at a part of {argument.file}"
            )
        project.learn(lesson)
        project.map_paths(self._server.session.roots)
        rebind_all(self._server)
        refresh(self._server)
        return lesson

    async def callers(self, argument: arguments.PlaceArgument) -> list[answers.Caller]:
        """Who calls a line's function."""
        project, index, file, line = self._place(argument)
        return callers(self._server, project, index, file, line)

    async def show_callers(self, argument: arguments.PlaceArgument) -> list[answers.Caller]:
        """The same, and the user picks one to go to."""
        project, index, file, line = self._place(argument)
        found = callers(self._server, project, index, file, line)
        self._server.start(show_callers(self._server, found))
        return found

    async def annotations(self, argument: arguments.UriArgument) -> list[answers.AnnotatedLine]:
        """All measured lines of an open document as they stand now."""
        document = self._server.document(argument.uri)
        return [] if document is None else measured_lines(self._server, document)

    async def list_traces(self, argument: arguments.ListArgument) -> list[answers.ListedTrace]:
        """The traces in the configured places, the newest first."""
        loop = asyncio.get_running_loop()
        projects = [self._project(argument)] if argument.root is not None else self._server.session.projects
        listed: list[tuple[FoundTrace, Project]] = []
        for project in projects:
            listed.extend((trace, project) for trace in await self._listing(project))
        listed.sort(key=lambda pair: pair[0].newest_first)
        known = [(one, _is_shown(one, of), of.unreadable.get(one.file, "")) for one, of in listed[: argument.limit]]
        return await loop.run_in_executor(
            None, lambda: [listed_trace(one, is_shown=is_it, problem=problem) for one, is_it, problem in known]
        )

    async def list_runs(self, argument: arguments.ListArgument) -> list[answers.Run]:
        """The same by their runs."""
        return runs_of(await self.list_traces(argument))

    async def select_trace(self, argument: arguments.PathArgument) -> answers.Status:
        """Shows a trace of the user's choice from now on, or the newest again."""
        project = self._project(argument)
        memory = project.remembered.memory
        before = memory.trace, memory.is_run
        chosen = (self._absolute(project, argument.path) if argument.path else "", argument.run)
        memory.trace, memory.is_run = chosen
        try:
            await self._watcher.load_newest(project)
        except DeepScopeError:
            if (memory.trace, memory.is_run) == chosen:  # else a later choice has cancelled this one
                memory.trace, memory.is_run = before
            raise
        project.remembered.save()
        return status_of(project, "ready")

    async def reload(self, argument: arguments.Where) -> answers.Status:
        """Looks for traces now and loads what is to be shown."""
        project = self._project(argument)
        await self._watcher.load_newest(project)
        return status_of(project, "ready")

    async def set_baseline(self, argument: arguments.PathArgument) -> answers.Status:
        """Compares with another trace, or with what is shown now once a newer trace is there."""
        project, index = self._shown(argument)
        if argument.path is None:
            project.compare_with(index.profile)
        else:
            path = self._absolute(project, argument.path)
            selection = await self._run_of(project, path) if argument.run else None
            request = loading.request_for(project, path, selection)
            try:
                project.compare_with(await loading.load(self._server, project, request))
            finally:
                self._watcher.look()  # this load may have taken the place of one of a new trace
        self._changed(project)
        return status_of(project, "ready")

    async def clear_baseline(self, argument: arguments.Where) -> None:
        """Compares no longer."""
        project = self._project(argument)
        project.compare_with(None)
        self._changed(project)

    async def status(self, argument: arguments.Where) -> answers.Status:
        """What is shown now."""
        project = self._project(argument)
        state: answers.State = (
            "loading" if project.loader is not None else "ready" if project.index is not None else "none"
        )
        return status_of(project, "error" if project.error else state, project.error)

    async def hide_finding(self, argument: arguments.HideArgument) -> None:
        """Hides a diagnostic's code on a line, in a file or everywhere; remembered for the workspace folder."""
        project = self._project(argument)
        text = ""
        if argument.line is not None:
            index = self._shown(argument)[1]
            text = index.text_of(argument.file or "", argument.line)
            if not text.strip():
                raise NoTraceError(f"{argument.file}:{argument.line}: the trace has no text of this line")
        entry = hiding_entry(argument.code, argument.file, text)
        memory = project.remembered.memory
        if entry not in memory.hidden:
            memory.hidden.append(entry)
            project.remembered.save()
        refresh(self._server)

    async def try_command(self, argument: arguments.TryArgument) -> answers.TryCommand:
        """The command that tries what answers a finding, on the program that was recorded."""
        return try_command(self._server.session, self._project(argument), argument.code)

    async def show_try_command(self, argument: arguments.TryArgument) -> answers.TryCommand:
        """The same, and the user is shown it, to be run in a terminal."""
        found = await self.try_command(argument)
        words = printable(shlex.join(["deepscope", *found.arguments]))
        self._server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Run: {words}"))
        return found

    async def unhide_findings(self, argument: arguments.Where) -> list[str]:
        """Shows everything again; answers what was hidden."""
        project = self._project(argument)
        hidden, project.remembered.memory.hidden = project.remembered.memory.hidden, []
        project.remembered.save()
        refresh(self._server)
        return hidden

    async def _listing(self, project: Project) -> list[FoundTrace]:
        loop = asyncio.get_running_loop()
        places = await loop.run_in_executor(None, resolve_places, project.settings.traces, project.root)
        return await loop.run_in_executor(None, find_traces, places, project.listing)

    async def _run_of(self, project: Project, path: str) -> TraceSelection | None:
        show = project.settings.show
        return run_of(path, await self._listing(project), rank=show.rank, stage=show.stage)

    def _changed(self, project: Project) -> None:
        refresh(self._server)
        tell_status(self._server, project, "ready")

    def _project(self, argument: arguments.Where) -> Project:
        session = self._server.session
        if argument.root is not None:
            path = to_path(argument.root)  # editors quote URIs each in their own way
            for project in session.projects:
                if path and project.root and os.path.normcase(path) == os.path.normcase(project.root):
                    return project
            raise NoTraceError(f"{argument.root}: no such workspace folder is open")
        return session.main_project() or session.projects[0]

    def _shown(self, argument: arguments.Where) -> tuple[Project, ProfileIndex]:
        project = self._project(argument)
        if project.index is None:
            raise NoTraceError(
                project.error or "no trace is loaded; record one or choose one with deepscope.selectTrace"
            )
        return project, project.index

    def _place(self, argument: arguments.PlaceArgument) -> tuple[Project, ProfileIndex, str, int]:
        if argument.uri is not None:
            document = self._server.document(argument.uri)
            if document is None or document.binding is None or document.project is None:
                raise NoTraceError(f"{argument.uri}: not open, or not in the trace")
            home = document.binding.recorded_line(argument.line)
            return document.project, document.binding.index, document.binding.file.path, home or 0
        project, index = self._shown(argument)
        return project, index, argument.file or "", argument.line

    def _absolute(self, project: Project, path: str) -> str:
        if is_url(path):
            return path
        return os.path.normpath(os.path.join(project.root, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _is_shown(found: FoundTrace, project: Project) -> bool:
    shown = project.index.profile.trace if project.index is not None else None
    return shown is not None and without_secrets(found.file.path) in (shown.paths or [shown.path])


COMMANDS: dict[str, Callable[[Commands, Any], Awaitable[object]]] = {
    "deepscope.hotLines": Commands.hot_lines,
    "deepscope.callPaths": Commands.call_paths,
    "deepscope.linePaths": Commands.line_paths,
    "deepscope.modules": Commands.modules,
    "deepscope.findings": Commands.findings,
    "deepscope.resolvePath": Commands.resolve_path,
    "deepscope.locate": Commands.locate,
    "deepscope.recordedLine": Commands.recorded_line,
    "deepscope.recordedText": Commands.recorded_text,
    "deepscope.mapFolder": Commands.map_folder,
    "deepscope.callers": Commands.callers,
    SHOW_CALLERS: Commands.show_callers,
    "deepscope.annotations": Commands.annotations,
    "deepscope.listTraces": Commands.list_traces,
    "deepscope.listRuns": Commands.list_runs,
    "deepscope.selectTrace": Commands.select_trace,
    "deepscope.setBaseline": Commands.set_baseline,
    "deepscope.clearBaseline": Commands.clear_baseline,
    "deepscope.reload": Commands.reload,
    "deepscope.status": Commands.status,
    "deepscope.tryCommand": Commands.try_command,
    SHOW_TRY_COMMAND: Commands.show_try_command,
    HIDE_FINDING: Commands.hide_finding,
    "deepscope.unhideFindings": Commands.unhide_findings,
}
"""By name. Annotations say what each takes and answers; the extension's contract is made from them too."""


def register(server: DeepScopeServer, watcher: Watcher) -> None:
    """Registers the commands."""
    commands = Commands(server, watcher)
    for name, run in COMMANDS.items():
        _register(server, commands, name, run)


def _register(
    server: DeepScopeServer, commands: Commands, name: str, run: Callable[[Commands, Any], Awaitable[object]]
) -> None:
    kind = get_type_hints(run)["argument"]

    @server.command(name)
    async def command(*given: Any) -> object:
        try:
            argument = msgspec.convert(given[0] if given and given[0] is not None else {}, kind)
            return await run(commands, argument)
        except msgspec.ValidationError as error:
            raise JsonRpcInvalidParams(f"{name}: {error}") from error
        except DeepScopeError as error:
            raise JsonRpcException(error.message(in_settings), code=REQUEST_FAILED) from error
