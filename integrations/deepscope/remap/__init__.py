"""Recorded lines carried onto the text as it is now."""

from deepscope.remap.line_map import LineMap

__all__ = ["LineMap"]
