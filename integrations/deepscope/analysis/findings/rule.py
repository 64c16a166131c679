"""A rule: what it is called, and how it looks for places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from deepscope.analysis.findings.facts import Facts
from deepscope.records import Edit, Evidence, Finding, Remedy, Severity
from deepscope.records.findings import severity_of

_HARDLY_AWAITED = "; but the CPU hardly waits for the device: launch its work faster first"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; its code is stable, its page is docs/findings/CODE.md."""

    code: str
    title: str
    find: Callable[[Facts], Iterable[Finding]]
    shortens_work: bool = False
    """Whether it saves a device's time: where the CPU hardly waits for the device, a step is no shorter for that."""
    worth: float = 0.02
    """A place is named if it would save, or takes, at least this share of the wall time."""
    measured_on: tuple[Literal["cpu", "device"], ...] = ()
    """Where programs were measured with its mistake and without it, and gained about what it promised."""

    def worth_ns(self, facts: Facts) -> float:
        """What a place would save, or takes, at least."""
        return max(self.worth * facts.wall_ns, 1)

    def found(self, facts: Facts) -> list[Finding]:
        """Where the rule holds; it looks once, however many ask."""
        return facts.once(self._listed)

    def _listed(self, facts: Facts) -> list[Finding]:
        return list(self.find(facts))

    def finding(
        self,
        facts: Facts,
        *,
        location: int,
        message: str,
        evidence: Evidence,
        saving_ns: int,
        remedy: str,
        edits: Iterable[Edit] = (),
        severity: Severity | None = None,
        is_bound: bool = False,
    ) -> Finding:
        """A place where the rule holds.

        Args:
            facts: of the analysis.
            location: index into `Scopes.locations`; -1, or its length, where no line is known.
            message: what is wrong.
            evidence: figures by name: `…_ns` and `…_bytes` over the whole extent, means in `…_us`. Integers add up over
                ranks; fractions do not.
            saving_ns: at most so much time over the whole extent, and never more than the window; the rule's page says
                how it is estimated.
            remedy: what to do.
            edits: what a machine can do, all together or none.
            severity: where it is no time that would be saved; else by the saving.
            is_bound: whether the saving is no estimate that the rule was measured with.
        """
        place = facts.locations[location] if 0 <= location < facts.lines else None
        saving_ns = min(saving_ns, facts.wall_ns)
        if self.shortens_work and (most_ns := facts.most_of_device_ns(location)) < saving_ns:
            message += _HARDLY_AWAITED if 2 * most_ns < saving_ns else ""
            saving_ns = most_ns
        return Finding(
            code=self.code,
            title=self.title,
            severity=severity or severity_of(saving_ns, facts.wall_ns),
            file=place.file if place else "",
            line=place.line if place else 0,
            function=place.function if place else "",
            message=message,
            evidence=evidence if facts.steps else _of_no_steps(evidence),
            saving_ns=saving_ns,
            is_measured=("device" if facts.has_device else "cpu") in self.measured_on and not is_bound,
            remedy=Remedy(remedy, list(edits)),
            doc=f"docs/findings/{self.code}.md",
        )

    def found_at(
        self,
        facts: Facts,
        place: int,
        *,
        takes_ns: int,
        message: str,
        evidence: Evidence,
        remedy: str,
        saving_ns: int | None = None,
        worth: float | None = None,
        is_bound: bool = False,
    ) -> Iterator[Finding]:
        """A finding at a place of the audit, if what it found takes enough time there.

        Args:
            facts: of the analysis.
            place: index into the account's places.
            takes_ns: how long it takes in the window.
            message: as for `finding`.
            evidence: as there; the steps that were looked at are added.
            remedy: as there.
            saving_ns: where that is not all of it.
            worth: where it has to take another share of the wall time than the rule's other places.
            is_bound: as there.
        """
        if takes_ns >= (self.worth_ns(facts) if worth is None else max(worth * facts.wall_ns, 1)):
            yield self.finding(
                facts,
                location=facts.audited_line(place),
                message=message,
                evidence=evidence | {"looked_at_steps": facts.audit.steps},
                saving_ns=takes_ns if saving_ns is None else saving_ns,
                remedy=remedy,
                is_bound=is_bound,
            )


def _of_no_steps(evidence: Evidence) -> Evidence:
    """The figures without means of a step that say what stands beside them, as the whole is one."""
    return {
        name: value
        for name, value in evidence.items()
        if not name.endswith("_per_step") or name.removesuffix("_per_step") not in evidence
    }
