"""Who calls a line: as data, and as a choice that any editor can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope.printable import printable
from deepscope.records.places import short_path
from deepscope_lsp.answers import Caller
from deepscope_lsp.engine.places import place_fields
from deepscope_lsp.engine.wording import quantities

if TYPE_CHECKING:
    from deepscope_lsp.engine.profile.profile_index import ProfileIndex
    from deepscope_lsp.engine.project import Project
    from deepscope_lsp.server import DeepScopeServer

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
    """Asks which caller to go to, and goes there where the editor can be told to."""
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
    if (
        target is None
        or target.uri is None
        or target.current_line is None
        or window is None
        or window.show_document is None
    ):
        return
    place = types.Position(target.current_line - 1, 0)
    shown = types.ShowDocumentParams(target.uri, take_focus=True, selection=types.Range(place, place))
    await server.ask(server.window_show_document_async(shown))


def _title(caller: Caller) -> str:
    return printable(f"{caller.function} {caller.short_file}:{caller.line} {caller.label}")
