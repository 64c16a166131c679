"""Answers that a file carries with it, in the place of a server: which questions, and how much of each answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec

from deepscope.dashboard.answer import Choice, Table, encoded
from deepscope.dashboard.application import QUESTIONS, question_type
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.flame import Flame
from deepscope.dashboard.pages.line import LineDetails
from deepscope.dashboard.pages.modules import Modules
from deepscope.dashboard.pages.operators import kernel_key, operator_key, operator_rows
from deepscope.errors import DeepScopeError
from deepscope.records import Profile
from deepscope.report.call_paths import FlameTree, largest

_LOG = logging.getLogger(__name__)

NODES_OF_A_LINE = 40
"""A line has so much fewer nodes below it than the flame graph has."""

Words = Mapping[str, Any]
"""A question's words by their names in addresses, as the pages ask them."""
Queries = Callable[[Profile, Library], Iterable[Words]]
Cut = Callable[[Any, "Budget"], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a large profile a file has."""

    rows: int
    """Of each table, the first."""
    nodes: int
    """Of the flame graph, the largest."""
    text_bytes: int
    """Of answers of which there is one a file, a line or a rank, the most expensive first."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """How a question gets into a file."""

    queries: Queries
    cut: Cut | None = None
    """What makes an answer smaller, beside its tables, which all become smaller."""
    is_bounded: bool = False
    """Whether its answers share `Budget.text_bytes`."""


def _once(_: Profile, __: Library) -> Iterator[Words]:
    yield {}


def _files(profile: Profile, _: Library) -> Iterator[Words]:
    costs: dict[str, int] = {}
    for line in (*profile.lines, *profile.library_lines):
        costs[line.file] = costs.get(line.file, 0) + line.cost_ns
    for file in sorted(costs, key=lambda file: -costs[file]):
        yield {"file": file}


def _lines(profile: Profile, _: Library) -> Iterator[Words]:
    """Each line; of one that runs in several functions each of these, too."""
    yield {"file": "", "line": 0}
    functions: dict[tuple[str, int], list[str]] = {}
    for line in sorted((*profile.lines, *profile.library_lines), key=lambda line: -line.cost_ns):
        functions.setdefault((line.file, line.line), []).append(line.function)
    for (file, number), names in functions.items():
        yield {"file": file, "line": number}
        if len(names) > 1:
            yield from ({"file": file, "line": number, "function": name} for name in names)


def _flames(_: Profile, __: Library) -> Iterator[Words]:
    for depth, direction, metric in (
        ("kernel", "down", ""),
        ("kernel", "down", "device"),
        ("kernel", "up", ""),
        ("kernel", "up", "device"),
        ("line", "down", ""),
        ("line", "down", "device"),
        ("kernel", "down", "backward"),
        ("kernel", "down", "cpu"),
    ):
        yield {"depth": depth, "direction": direction, "metric": metric}


def cut_flame(flame: Flame, budget: Budget) -> None:
    """Leaves the largest nodes; the time of the others goes to their parents."""
    tree = FlameTree(
        frames=list(flame.shown),
        parents=flame.parents,
        own=[(own,) for own in flame.own],
        left_out=flame.left_out,
        left_out_ns=(flame.left_out_ns,),
    )
    cut = largest(tree, budget.nodes)
    frames: dict[Any, int] = {}
    flame.shown = [frames.setdefault(frame, len(frames)) for frame in cut.frames]
    flame.frames = [flame.frames[frame] for frame in frames]
    flame.parents, flame.own = cut.parents, [own for (own,) in cut.own]
    flame.left_out, flame.left_out_ns = cut.left_out, cut.left_out_ns[0]


def cut_modules(modules: Modules, _: Budget) -> None:
    """Leaves paths for the rows that are left."""
    modules.paths = modules.paths[: len(modules.table.rows)]


def cut_below(line: LineDetails, budget: Budget) -> None:
    """Leaves the largest nodes below a line; none has more than its parent, so they are a tree again."""
    limit = max(budget.nodes // NODES_OF_A_LINE, 1)
    order = sorted(range(len(line.below)), key=lambda number: (-line.below[number].total_ns, number))
    kept = sorted(order[:limit])
    at = {number: place for place, number in enumerate(kept)}
    line.below_left_out += len(line.below) - len(kept)
    below = [line.below[number] for number in kept]
    for node in below:
        node.parent = at.get(node.parent, -1)
    line.below = below


def _ranks(_: Profile, library: Library) -> Iterator[Words]:
    """Each rank of several: the late ones, then the others by their own time."""
    report = library.ranks(Choice()).report
    if len(report.ranks) > 1:
        slowest = sorted(report.ranks, key=lambda row: (-row.own_ns, row.rank))
        late = [one.rank for one in report.stragglers]
        yield from ({"of": rank} for rank in dict.fromkeys([*late, *(row.rank for row in slowest)]))


def _finding_pages(profile: Profile, _: Library) -> Iterator[Words]:
    for code in dict.fromkeys(finding.code for finding in profile.findings):
        yield {"code": code}


def _operators(profile: Profile, _: Library) -> Iterator[Words]:
    for row in operator_rows(profile, "name"):
        yield {"by": "name", "key": operator_key(row)}


def _kernels(profile: Profile, _: Library) -> Iterator[Words]:
    for row in profile.kernels:
        yield {"key": kernel_key(row)}


EMBEDDED: dict[str, Embedded] = {
    "runs": Embedded(_once),
    "header": Embedded(_once),
    "overview": Embedded(_once),
    "findings": Embedded(_once),
    "lines": Embedded(_once),
    "line_list": Embedded(_once),
    "operators": Embedded(lambda *_: ({"by": "name"},)),
    "kernels": Embedded(_once),
    "modules": Embedded(lambda *_: ({"folded": True}, {"folded": False}), cut_modules),
    "memory": Embedded(_once),
    "memory_snapshot": Embedded(_once),
    "distributed": Embedded(_once),
    "rank": Embedded(_ranks, is_bounded=True),
    "steps": Embedded(_once),
    "finding_page": Embedded(_finding_pages),
    "flame": Embedded(_flames, cut_flame),
    "file": Embedded(_files, is_bounded=True),
    "line": Embedded(_lines, cut_below, is_bounded=True),
    "operator": Embedded(_operators, is_bounded=True),
    "kernel": Embedded(_kernels, is_bounded=True),
}
"""By the question's name. What is missing here needs a server; pages that ask it say so (`needsServer`)."""


def embedded_answers(library: Library, profile: Profile, budget: Budget) -> dict[str, msgspec.Raw]:
    """Answers by `key_of`; a question that this profile has no answer to is left out.

    An answer that is the same as another one is that one's name. `profile` is the one that `library` shows first.
    """
    found: dict[str, msgspec.Raw] = {}
    known: dict[bytes, str] = {}
    for name, one in EMBEDDED.items():
        left = budget.text_bytes
        for words in one.queries(profile, library):
            body = _answer(library, name, words, budget)
            if body is None:
                continue
            key = key_of(name, words)
            text = msgspec.json.encode(known[body]) if body in known else body
            if one.is_bounded:
                if len(text) > left:
                    continue
                left -= len(text)
            known.setdefault(body, key)
            found[key] = msgspec.Raw(text)
    return found


def key_of(name: str, words: Words) -> str:
    """The name of an answer, as `source/embedded.ts` makes it: the query as a browser's URLSearchParams writes it."""
    query = {key: _in_address(value) for key, value in sorted(_given(words).items())}
    return f"{name}?{urlencode(query, safe='*').replace('~', '%7E')}"


def _given(words: Words) -> Words:
    return {key: value for key, value in words.items() if value not in (None, "", [])}


def _in_address(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _answer(library: Library, name: str, words: Words, budget: Budget) -> bytes | None:
    question = msgspec.convert(_given(words), question_type(name), strict=False)
    try:
        answer = QUESTIONS[name](library, question)
        for table in _tables(answer):
            cut_table(table, budget.rows)
        if (cut := EMBEDDED[name].cut) is not None:
            cut(answer, budget)
        return encoded(answer)
    except DeepScopeError:
        return None
    except Exception:  # noqa: BLE001  one page less, and not no file
        _LOG.exception("%s is left out of the file", name)
        return None


def _tables(answer: Any) -> Iterator[Table]:
    if isinstance(answer, Table):
        yield answer
    elif isinstance(answer, msgspec.Struct):
        for field in answer.__struct_fields__:
            yield from _tables(getattr(answer, field))
    elif isinstance(answer, (list, tuple)) and answer and isinstance(answer[0], msgspec.Struct):
        for one in answer:
            yield from _tables(one)


def cut_table(table: Table, rows: int) -> None:
    """Leaves the first rows; each of a tree stands after its parent, so they are a tree again."""
    left_out = max(len(table.rows) - rows, 0)
    if left_out:
        table.rows, table.places = table.rows[:rows], table.places[:rows]
        table.parents, table.keys = table.parents[:rows], table.keys[:rows]
        used = sorted({file for file, _ in table.places if file >= 0})
        number = {file: at for at, file in enumerate(used)}
        table.files = [table.files[file] for file in used]
        table.places = [[number.get(file, -1), line] for file, line in table.places]
        table.left_out += left_out
