"""Inlay hints: the time at the end of each measured line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from deepscope_lsp.engine.files.binding import Mark, Shown
from deepscope_lsp.engine.wording import quantities
from deepscope_lsp.engine.wording.annotation import annotate
from deepscope_lsp.positions import line_end, lines_of

if TYPE_CHECKING:
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


def register(server: DeepScopeServer) -> None:
    """Registers `textDocument/inlayHint`."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.document(params.text_document.uri)
        if document is None or document.binding is None or server.session.settings.inlay_hints == "off":
            return []
        first, last = lines_of(params.range)
        return list(_hints(server, document, first, min(last, len(document.buffer.lines))))


def _hints(server: DeepScopeServer, document: Document, first: int, last: int) -> Iterator[types.InlayHint]:
    settings = server.session.settings
    binding = document.binding
    assert binding is not None
    threshold = settings.threshold if settings.inlay_hints == "hot" else 0.0
    for shown in binding.shown_between(first, last, with_changed=settings.changed_lines == "mark"):
        note = annotate(shown.record, binding.index.scales)
        if not note.label or note.weight < threshold:
            continue
        yield types.InlayHint(
            position=line_end(shown.line, document.buffer.line(shown.line), server.units),
            label=note.fitted(_change(document, shown) + _mark(shown)),
            tooltip=note.tooltip,
            padding_left=True,
        )


def _change(document: Document, shown: Shown) -> str:
    """Against the baseline: `, -3.1 ms (-20 %)`; nothing where it may be noise."""
    project, binding = document.project, document.binding
    if project is None or project.baseline is None or binding is None or not project.is_baseline_chosen:
        return ""  # what changed from run to run stands in the lists; at each line it would be noise
    if project.baseline.noise(shown.record.file, shown.record.line) == "within":
        return ""
    new = binding.index.scales.costs.per_step_ns(shown.record)
    old = project.baseline.cost_per_step_ns(shown.record.file, shown.record.line)
    return f" · {quantities.change(old, new)}" if round(old) != round(new) else ""


def _mark(shown: Shown) -> str:
    return "" if shown.mark is Mark.NONE else f" ({shown.mark.value})"
