"""Recorded lines carried onto the text as it is now."""

from deepscope_lsp.remap.line_map import LineMap
from deepscope_lsp.remap.text_lines import split_lines

__all__ = ["LineMap", "split_lines"]
