"""The server as its features see it: one session, and ways to speak with the editor."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

import msgspec
from cattrs import transform_error
from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from deepscope.trace.format.header import own_version
from deepscope_lsp.engine.session import Document, EditorSession
from deepscope_lsp.engine.wording.quantities import in_message
from deepscope_lsp.positions import Units

log = logging.getLogger("deepscope_lsp")

REASON_LENGTH = 300

Step = Generator[tuple[Callable[..., Any], tuple[Any, ...], None], Any, None]


class Refused:
    """Stands for a message that needs no handler: it was answered already, or cannot be."""


def _handed_on(method: str) -> Any:
    """A protocol's method that does nothing but call the handler that is registered for a notification."""

    @lsp_method(method)
    def hand_on(protocol: LanguageServerProtocol, params: object) -> Step:
        handler = protocol.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None

    return hand_on


class DocumentProtocol(LanguageServerProtocol):
    """Hands the document notifications to the handlers registered for them, and does nothing else with them."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as its type. One of another shape is refused; a request is answered with an error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            method, number = data.get("method"), data.get("id")
            words = f"{method}: {_reason(error)}"
            log.warning("%s", words)
            if isinstance(method, str) and isinstance(number, (int, str)):
                self._send_response(number, error=JsonRpcInvalidParams(words).to_response_error())
            return Refused()

    def _serialize_message(self, data: Any) -> Any:
        """Serializes what is sent; this server's answers are structs."""
        return msgspec.to_builtins(data) if isinstance(data, msgspec.Struct) else super()._serialize_message(data)

    def handle_message(self, message: Any) -> None:
        """Hands a message to its handler; what is not a message of the protocol is left alone."""
        if isinstance(message, Refused):
            return
        if not hasattr(message, "jsonrpc"):
            log.warning("no message of the protocol: %s", repr(message)[:REASON_LENGTH])
            return
        super().handle_message(message)

    lsp_text_document__did_open = _handed_on(types.TEXT_DOCUMENT_DID_OPEN)
    lsp_text_document__did_change = _handed_on(types.TEXT_DOCUMENT_DID_CHANGE)
    lsp_text_document__did_close = _handed_on(types.TEXT_DOCUMENT_DID_CLOSE)
    lsp_notebook_document__did_open = _handed_on(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    lsp_notebook_document__did_change = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    lsp_notebook_document__did_close = _handed_on(types.NOTEBOOK_DOCUMENT_DID_CLOSE)


def _reason(error: JsonRpcException) -> str:
    cause = error.__cause__
    words = "; ".join(transform_error(cause)) if cause is not None else str(error)
    return words[:REASON_LENGTH]


_EDITORS_FAULTS = (JsonRpcException, json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_UNREADABLE = "Unable to deserialize message"
"""pygls puts the traceback into the words; `DocumentProtocol` says the same in one line."""


def quiet_pygls() -> None:
    """Makes the loggers of pygls' message loop say an editor's mistakes in one line."""
    for name in ("pygls.protocol.json_rpc", "pygls.io_", "pygls.server"):
        logging.getLogger(name).addFilter(_in_one_line)


def _in_one_line(record: logging.LogRecord) -> bool:
    if str(record.msg).startswith(_UNREADABLE):
        return False
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if isinstance(error, _EDITORS_FAULTS):
        record.msg, record.args = f"{record.getMessage()[:200]}: {error}", ()
        record.exc_info = record.exc_text = None
    return True


QUIET_SECONDS = 0.2
"""The pause after an edit before what need not be done at every keystroke."""

ANSWER_SECONDS = 5.0
"""How long the editor may take to answer what needs no person."""

Answer = TypeVar("Answer")

NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook="jupyter-notebook", cells=[types.NotebookCellLanguage(language="python")]
        )
    ]
)


class DeepScopeServer(LanguageServer):
    """A pygls server with this package's session."""

    def __init__(self) -> None:
        super().__init__(
            "deepscope",
            own_version() or "unknown",
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=DocumentProtocol,
        )
        self.session = EditorSession()
        self.units = Units()
        self._said: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_reporting = False

    def document(self, uri: str) -> Document | None:
        """An open document; None where the editor asks about one that it has not opened."""
        return self.session.documents.get(uri)

    async def ask(self, request: Awaitable[Answer], patience_seconds: float | None = ANSWER_SECONDS) -> Answer | None:
        """The editor's answer; None where it refuses or is silent for `patience_seconds`: editors promise too much."""
        try:
            return await asyncio.wait_for(request, patience_seconds)
        except (asyncio.TimeoutError, JsonRpcException) as error:
            log.warning("the editor did not answer: %s", str(error) or "no answer")
            return None

    def when_quiet(self, document: Document, action: Callable[[], None]) -> None:
        """Does something when nothing was typed into a document for a moment, unless it was closed."""
        version = document.version

        def act() -> None:
            if self.document(document.uri) is document and document.version == version:
                action()

        asyncio.get_running_loop().call_later(QUIET_SECONDS, act)

    def say(self, kind: types.MessageType, message: str) -> None:
        """Shows a message once in the life of the connection, and logs it every time; nothing in it becomes a link."""
        message = in_message(message)
        self.window_log_message(types.LogMessageParams(kind, message))
        if message not in self._said:
            self._said.add(message)
            self.window_show_message(types.ShowMessageParams(kind, message))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work beside the message loop; what it raises is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def end(self) -> None:
        """Stops the work beside the message loop: loads end at once, and with them the processes that read."""
        for task in self._tasks:
            task.cancel()
        for project in self.session.projects:
            if project.loader is not None:
                project.loader.cancel()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Logs what fails: the user cannot mend it. A request is answered with its error."""
        if source is FeatureRequestError or self._is_reporting:  # where the editor is gone, telling it fails too
            return
        log.error("%s: %s", getattr(source, "__name__", source), error)
        self._is_reporting = True
        try:
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{type(error).__name__}: {error}"))
        finally:
            self._is_reporting = False

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{type(error).__name__}: {error}"))


SOURCE = "DeepScope"
HOT_LINE = "hot-line"
"""The code of the diagnostics on hot lines; findings have codes of their own."""
SHOW_CALLERS = "deepscope.showCallers"
HIDE_FINDING = "deepscope.hideFinding"
SHOW_TRY_COMMAND = "deepscope.showTryCommand"
STATUS = "$/deepscope/status"
"""The notification of a changed status; since it begins with `$/`, an editor that does not know it ignores it."""
