"""Call paths as folded stacks for flame graph scripts: each line has one path and its device time in nanoseconds.

https://github.com/brendangregg/FlameGraph#2-fold-stacks
"""

from __future__ import annotations

from deepscope.records import Profile
from deepscope.report.paths import call_tree, node_path
from deepscope.report.places import short_path
from deepscope.report.wording import printable

__all__ = ["folded_report"]


def folded_report(profile: Profile) -> str:
    """One line a call path with device time: `main (train.py:3);forward (net.py:9) 1200`."""
    root = profile.trace.project_root
    names = [_frame(f"{line.function} ({short_path(line.file, root)}:{line.line})") for line in profile.lines]
    names.append("(no user line)")
    tree = call_tree(profile)
    return "".join(
        f"{';'.join(names[line] for line in node_path(tree, place))} {node.self_device_ns}\n"
        for place, node in enumerate(tree)
        if node.self_device_ns
    )


def _frame(name: str) -> str:
    return printable(name).replace(";", ",")
