"""Copies that tools make of source files: a build's, an installation's; nobody edits them."""

from __future__ import annotations

from collections.abc import Iterable

from deepscope_lsp.engine.recorded_path import parts_of

_TOOL_FOLDERS = frozenset(
    {"build", "dist", "site-packages", "dist-packages", "venv", "node_modules", "__pycache__", "egg-info"}
)
"""Folders that tools fill, beside all hidden ones (`.venv`, `.tox`, `.ipynb_checkpoints`)."""


def is_copy(path: str, roots: Iterable[str]) -> bool:
    """Whether a file lies in a folder that a tool has filled; where the workspace itself lies says nothing."""
    file = parts_of(path)
    inside = [rest for root in roots if (rest := file.below(parts_of(root))) is not None]
    folders = min(inside, key=len)[:-1] if inside else file.parts[:-1]
    return any(_is_filled_by_tools(part) for part in folders)


def source_parts(path: str) -> tuple[str, ...]:
    """The parts of the path that a copy shares with its source: what follows `build/lib` or `site-packages`."""
    parts = parts_of(path).parts
    last = max((place for place, part in enumerate(parts[:-1]) if _is_filled_by_tools(part)), default=None)
    if last is None:
        return ()
    rest = parts[last + 1 :]
    return rest[1:] if parts[last] == "build" and len(rest) > 1 and rest[0].partition(".")[0] == "lib" else rest


def _is_filled_by_tools(part: str) -> bool:
    return part in _TOOL_FOLDERS or (part.startswith(".") and part not in {".", ".."})
