"""Questions to the user: which recorded file an open one is, where the server cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from lsprotocol import types

from deepscope_lsp.engine.wording.quantities import in_message
from deepscope_lsp.features import refreshing

if TYPE_CHECKING:
    from deepscope_lsp.engine.session import Question
    from deepscope_lsp.server import DeepScopeServer

NONE_OF_THEM = "None of them"
SHOWN_CANDIDATES = 6


def ask(server: DeepScopeServer, question: Question) -> None:
    """Asks once per file and profile, beside the message loop."""
    name = question.document.path or question.document.uri
    if name in question.project.asked:
        return
    question.project.asked.add(name)
    server.start(_ask(server, question, name))


async def _ask(server: DeepScopeServer, question: Question, name: str) -> None:
    titles = [*question.candidates[:SHOWN_CANDIDATES], NONE_OF_THEM]
    question_words = f"{unquote(name)} may be one of several files in the DeepScope trace. Which one is it?"
    params = types.ShowMessageRequestParams(
        types.MessageType.Info, in_message(question_words), [types.MessageActionItem(title) for title in titles]
    )
    chosen = await server.ask(server.window_show_message_request_async(params), patience_seconds=None)
    document, project = question.document, question.project
    is_current = server.document(document.uri) is document and document.binding is None and project.index is not None
    if chosen is None or chosen.title not in question.candidates or not is_current:
        return
    if project.index is None or chosen.title not in project.index.files:
        return
    server.session.bind(project, document, chosen.title)
    if document.path is None:
        project.picked[document.uri] = chosen.title
    else:
        project.learn({chosen.title: document.path})
    refreshing.refresh(server)
