"""From what was watched: what each epoch computes anew of the same samples."""

from __future__ import annotations

from collections.abc import Set

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.trace.format.audit import SameWork


def sample_work(work: StepWork, repeats: Set[int]) -> list[SameWork]:
    """Of the first step, by the outermost line below which all is such; without what is done again (`repeats`)."""
    operations = work.operations
    samples = work.watch.samples.all()
    trained = (
        number for number, one in enumerate(operations) if one.step == 1 and work.watch.nodes.is_reached(one.node)
    )
    used = work.watch.flow.reaching(trained)
    mine = {first for first, number in samples.of_batch.items() if number in used} - repeats
    fixed = samples.of_batch.keys() | samples.fixed
    inner = set(samples.of_batch.values())
    found = [
        SameWork(
            place=place,
            result_bytes=sum(operations[number].result_bytes for number in group),
            operators=work.uses(group),
            of_batch=True,
            stored_bytes=sum(
                operations[number].result_bytes
                for number in group
                if not inner.issuperset(work.readers[samples.of_batch[number]])
            ),
        )
        for place, group in work.by_outermost_line(mine, fixed).items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)
