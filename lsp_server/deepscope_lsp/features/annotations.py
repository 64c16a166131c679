"""All measured lines of a document as data, for editors that draw them in their own way (a gutter, say)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepscope_lsp.answers import AnnotatedLine
from deepscope_lsp.engine.answering.hot_lines import numbers_of
from deepscope_lsp.engine.wording.annotation import annotate

if TYPE_CHECKING:
    from deepscope_lsp.engine.session import Document
    from deepscope_lsp.server import DeepScopeServer


def measured_lines(server: DeepScopeServer, document: Document) -> list[AnnotatedLine]:
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
            AnnotatedLine(
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
