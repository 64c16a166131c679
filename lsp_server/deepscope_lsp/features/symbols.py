"""Workspace symbols: hot functions by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.printable import printable
from deepscope.records.places import short_path
from deepscope_lsp.engine.wording.annotation import total_words

if TYPE_CHECKING:
    from deepscope_lsp.server import DeepScopeServer

LIMIT = 100


def register(server: DeepScopeServer) -> None:
    """Registers `workspace/symbol`."""

    @server.feature(types.WORKSPACE_SYMBOL)
    def symbol(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        found = []
        for one in _symbols(server, params.query.casefold()):
            found.append(one)
            if len(found) == LIMIT:
                break
        return found


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
            place = types.Position(found[1] - 1, 0)
            file = short_path(function.file, index.profile.trace.project_root)
            yield types.SymbolInformation(
                location=types.Location(found[0], types.Range(place, place)),
                name=printable(function.function),
                kind=types.SymbolKind.Method if "." in function.function else types.SymbolKind.Function,
                container_name=printable(f"{total_words(function, index.scales)} — {file}"),
            )


def _fits(query: str, name: str) -> bool:
    """Whether the letters of the query stand in the name in their order, as editors filter."""
    letters = iter(name)
    return all(letter in letters for letter in query)
