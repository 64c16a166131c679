"""`deepscope try`: each remedy that applies, tried on the unchanged program; or greedily on top of one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from deepscope.errors import DeepScopeError
from deepscope.records.findings import Try, TryVerdict
from deepscope.trials.judgement import verdict_of
from deepscope.trials.messages import ProgramFacts, Settings
from deepscope.trials.remedies import REMEDIES, remedies_of
from deepscope.trials.remedy import AppliedRemedy
from deepscope.trials.runs import TooLateError
from deepscope.trials.session import USED_UP, Measured, NotApplicableError, NoTimeError, Side, TrialSession, combined


@dataclass(frozen=True)
class Candidate:
    """A remedy to be tried, and the finding that it is tried for."""

    remedy: AppliedRemedy
    finding: str


def candidates(asked: Sequence[str], found: Sequence[str]) -> tuple[list[Candidate], list[Try]]:
    """What is tried, and a row for each finding that no remedy answers from outside.

    Args:
        asked: codes of findings and names of remedies; none for all.
        found: codes of the program's findings in a trace, the largest saving first; their remedies come first.
    """
    chosen: dict[str, Candidate] = {}
    rows: list[Try] = []
    for word in asked:
        if word in REMEDIES:
            chosen.setdefault(word, Candidate(REMEDIES[word], _code(REMEDIES[word], found)))
            continue
        remedies = remedies_of(word)
        for one in remedies:
            chosen.setdefault(one.name, Candidate(one, word))
        if not remedies:
            reason = "no remedy of it can be applied from outside; `deepscope verify` proves an edit"
            rows.append(_row(word, "", "not applicable", reason))
    if not asked:
        for code in found:
            for one in remedies_of(code):
                chosen.setdefault(one.name, Candidate(one, code))
        for one in REMEDIES.values():
            chosen.setdefault(one.name, Candidate(one, _code(one, found)))
    return list(chosen.values()), rows


def _code(remedy: AppliedRemedy, found: Sequence[str]) -> str:
    """The finding that a remedy is tried for: one that the program has, else the first that it answers."""
    return next((code for code in found if code in remedy.findings), next(iter(remedy.findings), ""))


def side_of(remedy: AppliedRemedy, settings: Settings) -> Side:
    """The program with one remedy."""
    return Side(remedy.words(settings), (remedy.change(settings),), remedy.rounding, remedy.draws_otherwise)


def try_each(session: TrialSession, chosen: Sequence[Candidate]) -> Iterator[Try]:
    """A row for each; what does not apply comes first, before any is timed."""
    open_ones = []
    for one in chosen:
        decision = one.remedy.decide(session.first.facts)
        if isinstance(decision, str):
            yield _row(one.finding, one.remedy.name, "not applicable", decision)
        else:
            open_ones.append((one, side_of(one.remedy, decision)))
    for number, (one, side) in enumerate(open_ones):
        share = session.left_s / (len(open_ones) - number)
        yield attempt(session, one.finding, session.unchanged, side, share)[0]


def attempt(
    session: TrialSession, finding: str, before: Side, after: Side, share_s: float
) -> tuple[Try, Measured | None]:
    """One side tried against another: its row, and what was measured."""
    try:
        measured = session.measure(before, after, share_s=share_s)
    except NotApplicableError as error:
        return _row(finding, after.name, "not applicable", str(error)), None
    except (NoTimeError, TooLateError) as error:
        return _row(finding, after.name, "inconclusive", str(error)), None
    except DeepScopeError as error:
        return _row(finding, after.name, "failed", str(error)), None
    return _measured_row(finding, after.name, measured), measured


class Search:
    """Keeps the best remedy, tries the others on top of it, and so on; then the final set is measured as a whole."""

    def __init__(self, session: TrialSession, chosen: Sequence[Candidate]) -> None:
        self._session = session
        self._chosen = chosen
        self._left = list(chosen)
        self._facts = session.first.facts
        self._rows: dict[str, Try] = {}
        self._kept: list[Side] = []

    @property
    def written(self) -> list[str]:
        """What is written for each remedy of the final set."""
        return [side.name.partition(": ")[2] for side in self._kept]

    def rows(self) -> list[Try]:
        """Of each remedy as it was tried last; the last row is of the final set as a whole, if there is any."""
        while self._left and (best := self._best()) is not None:
            self._keep(best)
        rows = [self._rows[one.remedy.name] for one in self._chosen]
        if self._kept:
            whole = combined(self._kept)
            rows.append(attempt(self._session, "", self._session.unchanged, whole, self._session.left_s)[0])
        return rows

    def _best(self) -> _Gain | None:
        """The remedy that gains most on top of what is kept; None where none gains."""
        session = self._session
        gains: list[_Gain] = []
        todo = list(self._applicable())
        base = combined(self._kept) if self._kept else session.unchanged
        for number, (one, side) in enumerate(todo):
            share = (session.left_s - session.round_s) / (len(todo) - number)  # the set is measured as a whole, too
            if share < session.round_s and (self._kept or gains):
                self._rows.setdefault(one.remedy.name, _row(one.finding, side.name, "inconclusive", USED_UP))
                continue
            row, measured = attempt(session, one.finding, base, combined([*self._kept, side]), share)
            self._rows[one.remedy.name] = replace(row, remedy=side.name)
            if row.verdict == "faster" and measured is not None:
                gains.append(_Gain(measured.found.ratio, one, side, measured.answer.facts))
        return max(gains, key=lambda gain: gain.ratio, default=None)

    def _applicable(self) -> Iterator[tuple[Candidate, Side]]:
        for one in self._left:
            decision = one.remedy.decide(self._facts)
            if not isinstance(decision, str):
                yield one, side_of(one.remedy, decision)
            elif one.remedy.name not in self._rows:
                self._rows[one.remedy.name] = _row(one.finding, one.remedy.name, "not applicable", decision)

    def _keep(self, best: _Gain) -> None:
        """Keep it; what gained nothing alone, or cannot go with it, is not tried on top."""
        self._kept.append(best.side)
        self._facts = best.facts
        remedy = best.candidate.remedy
        open_ones = {"faster", "inconclusive", "not applicable"}
        self._left = [
            one
            for one in self._left
            if one.remedy is not remedy
            and one.remedy.name not in remedy.clashes
            and self._rows[one.remedy.name].verdict in open_ones
        ]


@dataclass(frozen=True)
class _Gain:
    """A remedy that made the program faster."""

    ratio: float
    candidate: Candidate
    side: Side
    facts: ProgramFacts


_BUSY = "this machine is busy, or its runs differ much: unchanged and changed steps overlap"


def _measured_row(finding: str, remedy: str, measured: Measured) -> Try:
    """Of what was measured."""
    found, compared = measured.found, measured.compared
    verdict = verdict_of(found, compared.losses)
    return Try(
        finding=finding,
        remedy=remedy,
        before_ns=found.before_ns,
        after_ns=found.after_ns,
        speedup=found.ratio,
        interval=(found.low, found.high),
        verdict=verdict,
        reason=compared.reason or (_BUSY if verdict == "inconclusive" else ""),
        losses=compared.losses,
    )


def _row(finding: str, remedy: str, verdict: TryVerdict, reason: str) -> Try:
    """Of a remedy that was not measured."""
    return Try(finding=finding, remedy=remedy, verdict=verdict, reason=reason)
