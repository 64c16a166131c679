"""Where most of a line's time goes below it, in one line of Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from deepscope.report import markdown
from deepscope.report.below import Node, main_branch
from deepscope.report.places import place_name
from deepscope_lsp.engine.wording import quantities

LEAST_SHARE = 0.5
"""Of the line's time: the way down ends before a node that holds less."""
NAME_LENGTH = 60
TIMES = "\N{MULTIPLICATION SIGN}"
ARROW = " \N{RIGHTWARDS ARROW} "


def branch_words(line: Node, text: str, place: Callable[[str, int], str]) -> str:
    """The way down that holds most of a line's time, and its share; "" where it says no more than the line's text.

    Of each kind the innermost node stands for those around it, so that it is one line whatever the depth; layers that
    are alike are named besides, with their count: `encoder.layers.*` and in it `mlp`, not each module on the way.

    Args:
        line: the line's tree, layers that are alike made one.
        text: the line as it ran.
        place: a file and a line as Markdown.
    """
    branch = [node for node in main_branch(line) if node.total_device_ns >= LEAST_SHARE * line.total_device_ns]
    innermost = {node.kind: number for number, node in enumerate(branch)}
    alike = [number for number, node in enumerate(branch) if node.layers > 1]
    shown = [branch[number] for number in sorted({*innermost.values(), *alike[:1], *alike[-1:]})]
    if not shown or (len(shown) == 1 and _is_named(shown[0], text)):
        return ""
    share = quantities.share(branch[-1].total_device_ns / line.total_device_ns)
    return f"{ARROW.join(_words(node, _above(node, shown), place) for node in shown)}: {share} of it"


def _above(node: Node, shown: Sequence[Node]) -> str:
    """The path of the module that is shown above a module; "" where none is."""
    above = [one.name for one in shown if node.kind == one.kind == "module" and node.name.startswith(f"{one.name}.")]
    return above[-1] if above else ""


def _words(node: Node, above: str, place: Callable[[str, int], str]) -> str:
    if node.kind == "library" and node.line:
        return place(node.file, node.line)
    name = node.name if node.kind == "line" else place_name(node.kind, _below(above, node.name))
    short = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
    return markdown.code(short) + (f" {TIMES}{node.layers}" if node.layers > 1 else "")


def _below(above: str, name: str) -> str:
    """A module's name within one above it: `mlp` for `h.*.mlp` in `h.*`, `mlp.*` for `h.*.mlp.*` in `h.*.mlp`."""
    rest, last = name[len(above) + 1 :], above.rsplit(".", 1)[-1]
    if not above or rest == last == "*":
        return name
    return f"{last}.*" if rest == "*" else rest


def _is_named(node: Node, text: str) -> bool:
    """Whether a text has a node's own word: `relu` of `aten::relu_`."""
    word = re.split(r"[:.]", node.name)[-1].strip("_")
    return re.search(rf"\b{re.escape(word)}_?\b", text) is not None
