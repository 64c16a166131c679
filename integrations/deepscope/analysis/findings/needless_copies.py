"""DS044: a line copies what could be read where it is."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.audited_work import audit_of, location_of, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import bytes_text
from deepscope.records import Finding
from deepscope.trace.format.audit import NeedlessCopies

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
_DEEP = "aten::copy_"
_WORDS = {_DEEP: "deepcopy", "aten::_to_copy": "to"}
"""What a line calls; other operators are called as they are named."""
_READ_IT = (
    "Read the source itself. Where it needs a graph, a gradient or hooks of its own, `.detach()` and `.view_as(x)` "
    "copy nothing."
)
_TRANSPOSED = (
    "Leave `.contiguous()` out: matrix products and attention take transposed tensors, and broadcasting expands others."
)
_BROADCAST = (
    "Leave `.repeat(…)` out: broadcasting does the same, `.expand(…)` where a shape is asked for. Neither copies."
)
_ONCE = "Copy it once, before the loop or the layers that use it, and hand it on; it stays in memory until the last."


def _find(facts: Facts) -> Iterator[Finding]:
    for one in audit_of(facts).copies:
        copying_ns = unused_ns(facts, one.operators, backward=False)
        if copying_ns < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=location_of(facts, one.place),
            message=f"{_copied(one)}{_in_vain(one)}",
            evidence={
                "copying_ns": copying_ns,
                "copies_per_step": one.times,
                "result_bytes_per_step": one.result_bytes,
                "looked_at_steps": audit_of(facts).steps,
            },
            saving_ns=copying_ns,
            remedy=_remedy(one),
            is_bound=one.need == "once",  # casts of gradients, which go with these, are not counted
        )


def _copied(one: NeedlessCopies) -> str:
    count = f"{one.times:,} copies are" if one.times != 1 else "a copy is"
    shape = "" if one.name == _DEEP else f" of {one.shape}"
    return f"{count} made here ({_word(one.name)}{shape}, {bytes_text(one.result_bytes) or '0B'} a step)"


def _in_vain(one: NeedlessCopies) -> str:
    if one.need == "once":
        return ", though the step has the same copy already"
    if one.need == "layout":
        return f" for a layout that {_word(one.reader)} does not need"
    return " and only read, while what was copied stays as it is"


def _remedy(one: NeedlessCopies) -> str:
    if one.need == "layout":
        return _BROADCAST if one.name == "aten::repeat" else _TRANSPOSED
    return _ONCE if one.need == "once" else _READ_IT


def _word(operator: str) -> str:
    if operator.startswith("aten::_scaled_dot_product_"):
        return "scaled_dot_product_attention"
    return _WORDS.get(operator, operator.removeprefix("aten::"))


RULE = Rule("DS044", "Copies of what could be read in place", _find, shortens_work=True, measured_on=("cpu",))
