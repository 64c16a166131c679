"""An editor for tests: pygls' own client, which talks to a real server process and notes all that it is told."""

from __future__ import annotations

import ast
import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from lsprotocol import types
from pygls.io_ import run_async
from pygls.lsp.client import LanguageClient

from warm_python import SERVING, WarmProcess

__all__ = ["SERVER", "Editor", "editing", "run"]

SERVER = (sys.executable, "-m", "deepscope_lsp")
"""As editors start it."""
PATIENCE = 60.0
"""Seconds after which a wait fails; nothing waits as long as this when all is well."""


def capabilities(*, pull: bool = True, watch: bool = False, refresh: bool = True) -> types.ClientCapabilities:
    """What a full-grown editor can do; less of it for a plain one."""
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            configuration=True,
            did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=watch),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=refresh),
            code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=refresh),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=refresh),
        ),
        text_document=types.TextDocumentClientCapabilities(
            diagnostic=types.DiagnosticClientCapabilities() if pull else None,
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
        ),
        notebook_document=types.NotebookDocumentClientCapabilities(
            types.NotebookDocumentSyncClientCapabilities(dynamic_registration=False)
        ),
        window=types.WindowClientCapabilities(
            work_done_progress=True, show_document=types.ShowDocumentClientCapabilities(support=True)
        ),
    )


class Editor(LanguageClient):
    """Notes messages, progress, diagnostics and statuses; answers what servers ask."""

    def __init__(self) -> None:
        super().__init__("test-editor", "1")
        self.messages: list[str] = []
        self.logs: list[str] = []
        self.progress: list[Any] = []
        self.statuses: list[dict[str, Any]] = []
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.questions: list[types.ShowMessageRequestParams] = []
        self.shown: list[types.ShowDocumentParams] = []
        self.refreshes = 0
        self.settings: Any = None
        self.folder_settings: dict[str | None, Any] = {}
        """Of workspace folders, by URI; those without have `settings`."""
        self.pick: Callable[[types.ShowMessageRequestParams], types.MessageActionItem | None] = lambda _: None
        self.on_progress: Callable[[types.ProgressParams], None] = lambda _: None
        self.registered: list[str] = []
        self.texts: dict[str, str] = {}
        """Of documents as they were opened."""
        self._changed = asyncio.Condition()
        self._versions: dict[str, int] = {}
        self._register()

    async def start_warm(self, environment: dict[str, str]) -> tuple[WarmProcess, asyncio.StreamWriter]:
        """Starts a server whose standard input and output are one socket; the writer to it is the caller's to close."""
        ours, theirs = socket.socketpair()
        with theirs, open(os.devnull, "wb") as nothing:
            process = WarmProcess(
                module="deepscope_lsp",
                imported=SERVING,
                environment=environment,
                streams=(theirs.fileno(), theirs.fileno(), nothing.fileno()),
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        self.protocol.set_writer(writer)
        answering = run_async(self._stop_event, reader, self.protocol, error_handler=self.report_server_error)
        self._async_tasks.append(asyncio.create_task(answering))
        return process, writer

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Waits until something that the server tells makes a condition true."""

        async def wait() -> None:
            async with self._changed:
                await self._changed.wait_for(holds)

        try:
            await asyncio.wait_for(wait(), PATIENCE)
        except asyncio.TimeoutError:
            raise AssertionError(
                f"never: {what}; messages {self.messages}, statuses {self.statuses[-3:]}, logs {self.logs[-5:]}"
            ) from None

    async def until_ready(self) -> dict[str, Any]:
        """Waits until a profile is shown."""
        await self.until(lambda: any(one["state"] == "ready" for one in self.statuses), "a profile is shown")
        return self.statuses[-1]

    def open(self, path: Path | str, text: str | None = None) -> str:
        """Opens a file (or a text under a URI); answers its URI."""
        uri = path.as_uri() if isinstance(path, Path) else path
        if text is None:
            assert isinstance(path, Path)
            text = path.read_text(encoding="utf-8")
        self._versions[uri] = 1
        self.texts[uri] = text
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text))
        )
        return uri

    def edit(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replaces what stands between two positions (line and character from 0)."""
        self._versions[uri] += 1
        region = types.Range(types.Position(*start), types.Position(*end))
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=self._versions[uri]),
                [types.TextDocumentContentChangePartial(range=region, text=text)],
            )
        )

    def close(self, uri: str) -> None:
        """Closes a document."""
        self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def set(self, settings: Any) -> None:
        """Changes the settings; waits until the server has taken them."""
        self.settings = settings
        before = self.refreshes
        self.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
        await self.until(lambda: self.refreshes > before, "settings are taken")
        await self.command("status")  # behind whatever else the server tells of the change

    async def hints(self, uri: str, first: int = 0, last: int = 10_000) -> dict[int, str]:
        """Label of each hinted line (from 1)."""
        region = types.Range(types.Position(first, 0), types.Position(last, 0))
        found = await self.text_document_inlay_hint_async(
            types.InlayHintParams(types.TextDocumentIdentifier(uri), region)
        )
        return {hint.position.line + 1: str(hint.label) for hint in found or ()}

    async def hover(self, uri: str, line: int, character: int = 0) -> str:
        """Markdown of the hover at a line (from 1); "" where there is none."""
        found = await self.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line - 1, character))
        )
        return found.contents.value if found is not None else ""

    async def pull(self, uri: str) -> list[types.Diagnostic]:
        """The diagnostics of a document."""
        report = await self.text_document_diagnostic_async(
            types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
        )
        return list(report.items)

    async def actions(self, uri: str, diagnostic: types.Diagnostic) -> dict[str, types.CodeAction]:
        """The code actions on a diagnostic, by title."""
        found = await self.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri), diagnostic.range, types.CodeActionContext([diagnostic])
            )
        )
        return {action.title: _code_action(action) for action in found or ()}

    async def command(self, name: str, **argument: Any) -> Any:
        """Runs one of the server's commands."""
        return await self.workspace_execute_command_async(
            types.ExecuteCommandParams(f"deepscope.{name}", [argument] if argument else None)
        )

    async def send_raw(self, method: str, params: Any) -> Any:
        """A request whose parameters may have any shape: pygls itself sends only what the protocol knows."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.protocol, "get_message_type", lambda _: None)
            answer = self.protocol.send_request(method, params)
        return await asyncio.wait_for(asyncio.wrap_future(answer), PATIENCE)

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _register(self) -> None:
        def noted(method: str) -> Callable[[Callable[[Any], Any]], None]:
            def decorate(handle: Callable[[Any], Any]) -> None:
                async def handler(params: Any) -> Any:
                    answer = handle(params)
                    await self._note()
                    return answer

                self.feature(method)(handler)

            return decorate

        noted(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))
        noted(types.WINDOW_LOG_MESSAGE)(lambda params: self.logs.append(params.message))
        noted(types.WORKSPACE_CONFIGURATION)(
            lambda params: [self.folder_settings.get(item.scope_uri, self.settings) for item in params.items]
        )
        noted(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda _: None)
        noted("$/deepscope/status")(lambda params: self.statuses.append(_plain(params)))

        @noted(types.PROGRESS)
        def progress(params: types.ProgressParams) -> None:
            self.progress.append(params.value)
            self.on_progress(params)

        @noted(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)

        @noted(types.CLIENT_REGISTER_CAPABILITY)
        def registered(params: types.RegistrationParams) -> None:
            self.registered.extend(one.method for one in params.registrations)

        @noted(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def asked(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.questions.append(params)
            return self.pick(params)

        @noted(types.WINDOW_SHOW_DOCUMENT)
        def shown(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            self.shown.append(params)
            return types.ShowDocumentResult(success=True)

        def refreshed(_: Any) -> None:
            self.refreshes += 1

        for method in (
            types.WORKSPACE_INLAY_HINT_REFRESH,
            types.WORKSPACE_CODE_LENS_REFRESH,
            types.WORKSPACE_DIAGNOSTIC_REFRESH,
        ):
            noted(method)(refreshed)


@asynccontextmanager
async def editing(
    *roots: Path,
    cache: Path,
    settings: Any = None,
    options: Any = None,
    client: types.ClientCapabilities | None = None,
    command: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Editor]:
    """An editor with workspace folders, connected to a server of its own; the server must end by itself.

    Without a command the server's process begins with all imported.
    """
    editor = Editor()
    editor.settings = settings
    env = {**os.environ, "DEEPSCOPE_CACHE_DIR": str(cache), **environment}
    warm = None
    if command:
        await editor.start_io(*command, env=env)
    else:
        warm = await editor.start_warm(env)
    await begin(editor, *roots, options=options, client=client)
    try:
        yield editor
    finally:
        await editor.shutdown_async(None)
        editor.exit(None)
        await asyncio.wait_for(editor.stop(), PATIENCE)
        if warm is not None:
            process, writer = warm
            process.wait(PATIENCE)
            writer.close()
            await writer.wait_closed()


async def begin(
    editor: Editor, *roots: Path, options: Any = None, client: types.ClientCapabilities | None = None
) -> types.InitializeResult:
    """The first exchange of a connection."""
    folders = [types.WorkspaceFolder(root.as_uri(), root.name) for root in roots]
    result = await editor.initialize_async(
        types.InitializeParams(
            capabilities=client or capabilities(),
            process_id=os.getpid(),
            root_uri=folders[0].uri if folders else None,
            workspace_folders=folders,
            initialization_options=options,
        )
    )
    editor.initialized(types.InitializedParams())
    return result


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Runs a test's scenario."""
    asyncio.run(asyncio.wait_for(scenario, 4 * PATIENCE))


def _code_action(action: types.Command | types.CodeAction) -> types.CodeAction:
    """lsprotocol reads a code action that holds a command as a command, with the inner one as a text."""
    if isinstance(action, types.CodeAction):
        return action
    inner = ast.literal_eval(action.command)
    return types.CodeAction(action.title, command=types.Command(**inner))


def _plain(value: Any) -> Any:
    """pygls gives objects for what it does not know."""
    if hasattr(value, "_asdict"):
        return {name: _plain(entry) for name, entry in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
