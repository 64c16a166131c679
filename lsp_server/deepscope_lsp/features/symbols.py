"""Workspace symbols: hot functions by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.printable import printable
from deepscope.records.source_files import short_path
from deepscope_lsp.answers import Caller
from deepscope_lsp.engine.path_map import place_fields
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import total_words
from deepscope_lsp.positions import line_start

if TYPE_CHECKING:
    from deepscope_lsp.engine.profile_index import ProfileIndex
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

LIMIT = 100


def register(server: DeepScopeServer) -> None:
    """Registers `workspace/symbol`."""

    @server.feature(types.WORKSPACE_SYMBOL)
    def symbol(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        return list(islice(_symbols(server, params.query.casefold()), LIMIT))


def _symbols(server: DeepScopeServer, query: str) -> Iterator[types.SymbolInformation]:
    for project in server.session.projects:
        index = project.index
        if index is None:
            continue
        locate = server.session.locate(project)
        for function in sorted(index.profile.functions, key=lambda one: (-one.total_device_ns, -one.total_cpu_ns)):
            if not _fits(query, function.function.casefold()):
                continue
            found = locate(function.file, function.line)
            if found is None:
                continue
            file = short_path(function.file, index.profile.trace.project_root)
            yield types.SymbolInformation(
                location=types.Location(found[0], line_start(found[1])),
                name=printable(function.function),
                kind=types.SymbolKind.Method if "." in function.function else types.SymbolKind.Function,
                container_name=printable(f"{total_words(function, index.scales)} — {file}"),
            )


def _fits(query: str, name: str) -> bool:
    """Whether the letters of the query stand in the name in their order, as editors filter."""
    letters = iter(name)
    return all(letter in letters for letter in query)


SHOWN = 8


def callers(server: DeepScopeServer, project: Project, index: ProfileIndex, file: str, line: int) -> list[Caller]:
    """The lines that call the function of a line, the one with the most time first.

    A function's first line runs when it is defined, so for it the callers of all its lines are given.
    """
    locate = server.session.locate(project)
    calls = index.callers(file, line) or index.callers_of_function(file, line)
    return [
        Caller(
            **place_fields(call.line, locate),
            short_file=short_path(call.line.file, index.profile.trace.project_root),
            device_ns=call.device_ns,
            cpu_ns=call.cpu_ns,
            backward=call.is_backward,
            label=quantities.duration(index.scales.per_step(call.device_ns or call.cpu_ns)),
        )
        for call in calls
    ]


async def show_callers(server: DeepScopeServer, found: list[Caller]) -> None:
    """Asks which caller to go to, and goes there where the editor can be asked to."""
    if not found:
        server.window_show_message(
            types.ShowMessageParams(types.MessageType.Info, "DeepScope: no caller was recorded.")
        )
        return
    by_title = {_title(one): one for one in found[:SHOWN]}
    params = types.ShowMessageRequestParams(
        types.MessageType.Info, "Called from:", [types.MessageActionItem(title) for title in by_title]
    )
    chosen = await server.ask(server.window_show_message_request_async(params), patience_seconds=None)
    target = by_title.get(chosen.title) if chosen is not None else None
    window = server.client_capabilities.window
    if target is None or target.uri is None or target.current_line is None:
        return
    if window is None or window.show_document is None:
        return
    shown = types.ShowDocumentParams(target.uri, take_focus=True, selection=line_start(target.current_line))
    await server.ask(server.window_show_document_async(shown))


def _title(caller: Caller) -> str:
    return printable(f"{caller.function} {caller.short_file}:{caller.line} {caller.label}")
