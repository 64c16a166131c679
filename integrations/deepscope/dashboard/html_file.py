"""One HTML file that shows a profile: the dashboard's pages with the answers that they ask for, and no network.

The pages are those of the server (`bundle/`); `source/embedded.ts` reads the answers.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from deepscope.dashboard.application import QUESTIONS, question_type
from deepscope.dashboard.library import Library, RanksOfRun
from deepscope.dashboard.page_answer import Choice, Table, encoded, title_of, word
from deepscope.dashboard.pages.flame import Flame
from deepscope.dashboard.pages.line_details import LineDetails
from deepscope.dashboard.pages.operators import Modules, kernel_key, operator_key, operator_rows
from deepscope.dashboard.server import asset
from deepscope.errors import DeepScopeError, OptionError
from deepscope.ranks.rank_summary import summary_of
from deepscope.ranks.side_by_side import side_by_side
from deepscope.records import Detail, Profile
from deepscope.report.call_paths import FlameTree, largest
from deepscope.store.runs import FoundRun
from deepscope.store.selection import TraceSelection

_LOG = logging.getLogger(__name__)

NODES_OF_A_LINE = 40
"""A line has so much fewer nodes below it than the flame graph has."""

T = TypeVar("T")
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
    """Those of lines, and of findings whose lines cost nothing."""
    costs = {one.file: 0 for one in profile.findings if one.file in profile.files}
    for line in (*profile.lines, *profile.library_lines):
        costs[line.file] = costs.get(line.file, 0) + line.cost_ns
    for file in sorted(costs, key=lambda file: -costs[file]):
        yield {"file": file}


def _lines(profile: Profile, _: Library) -> Iterator[Words]:
    """Each line; of one that runs in several functions each of these, too."""
    yield {"file": "", "line": 0}
    functions: dict[tuple[str, int], list[str]] = {}
    for line in sorted((*profile.lines, *profile.library_lines), key=lambda line: -line.cost_ns):
        functions.setdefault((line.file, line.line), []).append(word(line.function))
    for (file, number), names in functions.items():
        yield {"file": file, "line": number}
        if len(names) > 1:
            yield from ({"file": file, "line": number, "function": name} for name in names)


def _flames(_: Profile, __: Library) -> Iterator[Words]:
    for depth, direction in (("kernel", "down"), ("kernel", "up"), ("line", "down")):
        for metric in ("", "device"):
            yield {"depth": depth, "direction": direction, "metric": metric}
    for metric in ("backward", "cpu"):
        yield {"depth": "kernel", "direction": "down", "metric": metric}


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


def _operators(profile: Profile, _: Library) -> Iterator[Words]:
    for row in operator_rows(profile, "name"):
        yield {"by": "name", "key": operator_key(row)}


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
    "distributed": Embedded(_once),
    "rank": Embedded(_ranks, is_bounded=True),
    "steps": Embedded(_once),
    "finding_page": Embedded(
        lambda profile, _: ({"code": one} for one in dict.fromkeys(row.code for row in profile.findings))
    ),
    "flame": Embedded(_flames, cut_flame),
    "file": Embedded(_files, is_bounded=True),
    "line": Embedded(_lines, cut_below, is_bounded=True),
    "operator": Embedded(_operators, is_bounded=True),
    "kernel": Embedded(lambda profile, _: ({"key": kernel_key(row)} for row in profile.kernels), is_bounded=True),
}
"""By the question's name. What is missing here needs a server; pages that ask it say so (`needsServer`)."""


def make_answers(library: Library, profile: Profile) -> dict[str, Any]:
    """Whole answers by `key_of`; a question that this profile has no answer to is left out.

    `profile` is the one that `library` shows first.
    """
    made: dict[str, Any] = {}
    for name, one in EMBEDDED.items():
        for words in one.queries(profile, library):
            question = msgspec.convert(_given(words), question_type(name), strict=False)
            if (answer := _tried(name, partial(QUESTIONS[name], library, question))) is not None:
                made[key_of(name, words)] = answer
    return made


def embedded_answers(made: Mapping[str, Any], budget: Budget) -> dict[str, msgspec.Raw]:
    """The answers as they stand in a file; one that is the same as another one is that one's name.

    Each is cut where it is: a smaller budget may follow, and no larger one.
    """
    found: dict[str, msgspec.Raw] = {}
    known: dict[bytes, str] = {}
    left = dict.fromkeys(EMBEDDED, budget.text_bytes)
    for key, answer in made.items():
        name = key.partition("?")[0]
        if (body := _tried(name, partial(_cut, name, answer, budget))) is None:
            continue
        text = msgspec.json.encode(known[body]) if body in known else body
        if EMBEDDED[name].is_bounded:
            if len(text) > left[name]:
                continue
            left[name] -= len(text)
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


def _tried(name: str, make: Callable[[], T]) -> T | None:
    """What `make` gives; None where there is no answer, or where it fails: one page less, and not no file."""
    try:
        return make()
    except DeepScopeError:
        return None
    except Exception:  # noqa: BLE001  whatever a trace does to it
        _LOG.exception("%s is left out of the file", name)
        return None


def _cut(name: str, answer: Any, budget: Budget) -> bytes:
    for table in _tables(answer):
        cut_table(table, budget.rows)
    if (cut := EMBEDDED[name].cut) is not None:
        cut(answer, budget)
    return encoded(answer)


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


LIMIT_BYTES = 2_000_000
_BUDGETS = (
    Budget(rows=1000, nodes=8000, text_bytes=300_000),
    Budget(rows=300, nodes=3000, text_bytes=150_000),
    Budget(rows=100, nodes=1000, text_bytes=50_000),
    Budget(rows=30, nodes=300, text_bytes=0),
)
"""Each smaller than the one before; the first with which the file is small enough is taken, else the last."""
_NOT_ASCII = re.compile(r"[\x80-\U0010ffff]")
_NOT_PLAIN = re.compile(r"[<>&\x7f-\U0010ffff]")


class OneProfile(Library):
    """A library of one profile, which is there already; no run, rank or step of it can be chosen."""

    def __init__(self, profile: Profile, ranks: Sequence[Profile] = ()) -> None:
        super().__init__(())
        self._profile = profile
        self._of_rank = {one.trace.ranks[0]: one for one in ranks if len(one.trace.ranks) == 1}
        summaries = [summary_of(one) for one in ranks or [profile]]
        self._side_by_side = RanksOfRun(summaries, side_by_side(summaries))

    def runs(self) -> list[FoundRun]:
        """None: there is nothing to choose from."""
        return []

    def run(self, choice: Choice) -> FoundRun:
        """One without a name, since no address has to name it."""
        del choice
        return FoundRun("", ())

    def selection(self, choice: Choice) -> TraceSelection:
        """Never there.

        Raises:
            OptionError: the traces are not at hand.
        """
        del choice
        raise OptionError("run", "", "a file has no traces")

    def profile(self, choice: Choice, details: tuple[Detail, ...] = ()) -> Profile:
        """The profile.

        Raises:
            OptionError: another one is asked for.
        """
        part = (choice.run, choice.stage, choice.step, choice.phase, choice.module)
        found = self._profile if choice.rank is None else self._of_rank.get(choice.rank)
        if found is None or details or part != ("", None, None, "", ""):
            raise OptionError("run", choice.run, "a file has one profile")
        return found

    def snapshot_file(self, choice: Choice) -> None:
        """None: a file has no traces, beside which one could lie."""
        del choice

    def ranks(self, choice: Choice) -> RanksOfRun:
        """Each rank's own numbers."""
        del choice
        return self._side_by_side


def html_file(profile: Profile, ranks: Sequence[Profile] = ()) -> str:
    """The file's text, in ASCII: at most `LIMIT_BYTES`, unless the least is larger. `ranks` are those of `profile`."""
    library = OneProfile(profile, ranks)
    try:
        made = make_answers(library, profile)
    finally:
        library.close()
    for budget in _BUDGETS:
        text = _text(title_of(profile), embedded_answers(made, budget))
        if len(text) <= LIMIT_BYTES:
            break
    return text


def _text(title: str, answers: dict[str, msgspec.Raw]) -> str:
    script, style = _within("dashboard.js"), _within("dashboard.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    shown = escape(f"{title} \u00b7 DeepScope").encode("ascii", "xmlcharrefreplace").decode()
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{shown}</title>\n<style>{style}</style>\n</head>\n"
        '<body data-door="file">\n'
        "<noscript>These pages draw themselves with a script of their own; allow it to run.</noscript>\n"
        '<div id="root"></div>\n'
        f'<script type="application/json" id="answers">{_embedded(answers)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _within(name: str) -> str:
    """A file of the bundle, in ASCII; nothing in it may end the element that it is put into."""
    text = asset(name).decode("utf-8").strip()
    text = _NOT_ASCII.sub(_escaped if name.endswith(".js") else _escaped_in_css, text)
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("</style", "<\\/style")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(answers: dict[str, msgspec.Raw]) -> str:
    """JSON in ASCII without a letter that HTML reads: in it, `<` stands in strings alone."""
    return _NOT_PLAIN.sub(_escaped, msgspec.json.encode(answers).decode("utf-8"))


def _escaped_in_css(found: re.Match[str]) -> str:
    return f"\\{ord(found[0]):x} "


def _escaped(found: re.Match[str]) -> str:
    pairs = found[0].encode("utf-16-be")
    return "".join(f"\\u{pairs[at : at + 2].hex()}" for at in range(0, len(pairs), 2))
