"""One HTML file that shows a profile: the dashboard's pages with the answers that they ask for, and no network.

The pages are those of the server (`bundle/`); `source/embedded.ts` reads the answers.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape

import msgspec

from deepscope.dashboard.answer import Choice
from deepscope.dashboard.embedding import Budget, embedded_answers
from deepscope.dashboard.library import Library, RanksOfRun
from deepscope.dashboard.pages.tables import title_of
from deepscope.dashboard.server import asset
from deepscope.errors import OptionError
from deepscope.ranks.side_by_side import side_by_side
from deepscope.ranks.summary import summary_of
from deepscope.records import Detail, Profile
from deepscope.store.runs import FoundRun
from deepscope.store.selection import TraceSelection

LIMIT_BYTES = 2_000_000
_BUDGETS = (
    Budget(rows=1000, nodes=8000, text_bytes=300_000),
    Budget(rows=300, nodes=3000, text_bytes=150_000),
    Budget(rows=100, nodes=1000, text_bytes=50_000),
    Budget(rows=30, nodes=300, text_bytes=0),
)
"""The first with which the file is small enough is taken; the last is always."""
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

    def ranks(self, choice: Choice) -> RanksOfRun:
        """Each rank's own numbers."""
        del choice
        return self._side_by_side


def html_file(profile: Profile, ranks: Sequence[Profile] = ()) -> str:
    """The file's text, in ASCII: at most `LIMIT_BYTES`, unless the least is larger. `ranks` are those of `profile`."""
    library = OneProfile(profile, ranks)
    try:
        for budget in _BUDGETS:
            text = _text(title_of(profile), embedded_answers(library, profile, budget))
            if len(text) <= LIMIT_BYTES:
                break
    finally:
        library.close()
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
