"""Tensors that need not be made: large ones between small ones, and copies of what could be read (DS043, DS044)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from deepscope.analysis.findings.audited_work import both_passes_ns, unused_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.quantities import bytes_text, count_text
from deepscope.records import Finding
from deepscope.trace.format.audit import Broadcast, NeedlessCopies

_ROWS = (
    "Rows of a matrix by their numbers: `F.embedding(ids, matrix)`, `matrix[ids]`, an `nn.Embedding` for a layer; sums "
    "of rows by number: `index_add_`."
)
_REPEAT = "aten::repeat"
_REMEDIES = {
    _REPEAT: "What is compared with all others: sort these once, and look places up (`torch.sort`, "
    "`torch.searchsorted`, `torch.topk`), or go through it in pieces; broadcasting (`x[:, None]`) at least makes no "
    "copy.",
    "aten::sub": "Distances of all pairs: `torch.cdist(a, b)`, or `a.square().sum(-1)[:, None] - 2 * a @ b.T + …`.",
    "aten::mul": "Sums of products: `a @ b.T`, `torch.einsum(…)`.",
    "aten::scatter_": _ROWS,
    "aten::scatter": _ROWS,
    "aten::eq": "Membership: `torch.isin(a, b)`; counts: `torch.bincount(a)`.",
}
_ORDER = "Places in an order: `torch.searchsorted(…)`, `torch.bucketize(…)`."
_OTHER = "Look for an operator that does both in one (`torch.cdist`, `@`, `torch.einsum`), or go through it in pieces."


def _find_broadcasts(facts: Facts) -> Iterator[Finding]:
    partly_read = {one.place for one in facts.audit.partly_read}  # whose time DS037 claims
    for one in (row for row in facts.audit.broadcasts if row.place not in partly_read):
        work_ns = both_passes_ns(facts, one)
        names = [name.removeprefix("aten::") for name in (one.name, one.reduction)]
        yield from BROADCASTS.found_at(
            facts,
            one.place,
            takes_ns=work_ns,
            saving_ns=int(work_ns * (1 - min(one.reduced_elements / max(prod(one.shape), 1), 1.0))),
            message=_made_large(one, f"{one.shape}, {bytes_text(one.result_bytes) or '0B'}", names),
            evidence={
                "work_ns": work_ns,
                "result_bytes_per_step": one.result_bytes,
                "largest_argument": one.given_elements,
            },
            remedy=_broadcasts_remedy(one),
            is_bound=one.name == _REPEAT,  # what does it otherwise, such as a sort, takes some time, too
        )


def _made_large(one: Broadcast, size: str, names: Sequence[str]) -> str:
    if _REMEDIES.get(one.name) is _ROWS:
        return f"a tensor of {size}, has a one for each of {count_text(one.given_elements)} numbers, for {names[1]}"
    if one.name == _REPEAT:
        return f"{names[0]} makes a tensor of {size}, of one that is much smaller, and {names[1]} makes it small again"
    return f"{names[0]} broadcasts to a tensor of {size}, which {names[1]} makes small again"


def _broadcasts_remedy(one: Broadcast) -> str:
    if one.name in {"aten::lt", "aten::le", "aten::gt", "aten::ge"}:
        return _ORDER
    return _REMEDIES.get(one.name, _OTHER)


BROADCASTS = Rule(
    "DS043", "Large tensors between small ones", _find_broadcasts, shortens_work=True, measured_on=("cpu",)
)


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
_GROWN = (
    "Append the parts to a list, and call `torch.cat` or `torch.stack` once behind the loop; or write them into a "
    "tensor of the whole size."
)
_ONCE = (
    "Copy it once, before the loop or the layers that use it, and hand it on; it stays in memory until its last use."
)


def _find_needless_copies(facts: Facts) -> Iterator[Finding]:
    for one in facts.audit.copies:
        copying_ns = unused_ns(facts, one.operators, backward=False)
        yield from NEEDLESS_COPIES.found_at(
            facts,
            one.place,
            takes_ns=copying_ns,
            message=f"{_copied(one)}{_in_vain(one)}",
            evidence={
                "copying_ns": copying_ns,
                "copies_per_step": one.times,
                "result_bytes_per_step": one.result_bytes,
            },
            remedy=_needless_copies_remedy(one),
            # Not counted are casts of gradients, which go with copies, and what a loop copies backward.
            is_bound=one.need in ("once", "grown"),
        )


def _copied(one: NeedlessCopies) -> str:
    count = f"{one.times:,} copies are" if one.times != 1 else "a copy is"
    shape = "" if one.name == _DEEP else f" of {one.shape}"
    return f"{count} made here ({_word(one.name)}{shape}, {bytes_text(one.result_bytes) or '0B'} a step)"


def _in_vain(one: NeedlessCopies) -> str:
    if one.need == "once":
        return ", though the step has the same copy already"
    if one.need == "grown":
        return ", each of all that the one before it copied and a little more"
    if one.need == "layout":
        return f" for a layout that {_word(one.reader)} does not need"
    return " and only read, while what was copied stays as it is"


def _needless_copies_remedy(one: NeedlessCopies) -> str:
    if one.need == "layout":
        return _BROADCAST if one.name == "aten::repeat" else _TRANSPOSED
    return {"once": _ONCE, "grown": _GROWN}.get(one.need, _READ_IT)


def _word(operator: str) -> str:
    if operator.startswith("aten::_scaled_dot_product_"):
        return "scaled_dot_product_attention"
    return _WORDS.get(operator, operator.removeprefix("aten::"))


NEEDLESS_COPIES = Rule(
    "DS044", "Copies of what could be read in place", _find_needless_copies, shortens_work=True, measured_on=("cpu",)
)
