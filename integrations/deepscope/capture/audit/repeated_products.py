"""Products with a weight whose rows repeat: the different rows could be multiplied, and their results gathered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import BYTE, CALL, StepWork
from deepscope.capture.audit.repeated_rows import Part, Product

_FLOP = 1 / 120
"""Large products with a weight come close to what a core can do, unlike those that `operator_uses` weighs."""
_GATHERED_BYTE = 1 / 5
"""Rows by numbers, read one by one, or added to where they came from."""
_LAYERS = frozenset({"Linear", "Sequential"})
"""Modules around a product that a line of the user's may call: others are a library's, which nobody changes."""


def repeated_products(work: StepWork) -> Iterator[Choice]:
    """Of the first step's forward work, where the user's own lines call the product."""
    operations = work.operations
    products = {
        number: one for number, one in work.watch.repeated_rows.products.items() if _is_users(work, operations[number])
    }
    backward: dict[int, list[Operation]] = defaultdict(list)
    """By the node of its forward operation."""
    for _, one in work.backward:
        backward[one.forward_node].append(one)
    copies: set[int] = set()
    for number, product in products.items():
        one = operations[number]
        is_read_alone = product.copy >= 0 and products.keys() >= set(work.readers[product.copy])
        copy = {product.copy} - copies if is_read_alone else set()
        copies |= copy
        different = max(part.different for part in product.parts if product.repeats(part))
        behind = backward[one.node] if one.node >= 0 else []
        needed = _needed(product, one, behind, copy_bytes=sum(operations[at].result_bytes for at in copy))
        yield Choice("repeated_rows", number, frozenset({number, *copy}), needed, different=different)


def _is_users(work: StepWork, one: Operation) -> bool:
    """Whether a line of the user's calls a product, or `nn.Linear`, alone or in an `nn.Sequential`."""
    call = one.call
    depth = len(work.paths[call.path])
    modules = {name for name, outside in zip(call.modules, call.depths, strict=True) if outside == depth}
    return call.is_direct or modules <= _LAYERS


def _needed(product: Product, one: Operation, backward: Sequence[Operation], *, copy_bytes: int) -> float:
    """The share of the work that is left, forward and backward, with what gathering and adding the results costs."""
    multiplied = sum(CALL + BYTE * other.result_bytes + _FLOP * other.flops for other in (one, *backward))
    repeated = [part for part in product.parts if product.repeats(part)]
    others = [part.width for part in product.parts if not product.repeats(part)]
    left = sum(others) + sum(part.width * part.different / product.rows for part in repeated)
    width = sum(part.width for part in product.parts)
    summands = len(repeated) + bool(others)
    added = (summands - 1) * (CALL * (1 + len(backward)) + BYTE * one.result_bytes)
    copied = BYTE * copy_bytes * sum(others) / width if len(others) > 1 else 0.0
    column_bytes = one.result_bytes / product.features
    moved = column_bytes * sum(_moved(product, part, has_backward=bool(backward)) for part in repeated)
    return min(max(multiplied * left / width + added + copied + moved, 0.0) / (multiplied + BYTE * copy_bytes), 1.0)


def _moved(product: Product, part: Part, *, has_backward: bool) -> float:
    """What gathering rows of results takes longer than gathering those of a part; less than 0 where it is faster.

    Of rows with one byte for an element, divided by how many there are.
    """
    more = product.features - part.width
    if not part.is_gathered:
        return BYTE * (more if part.needs_gradient else product.features) * has_backward
    return _GATHERED_BYTE * (more + (more if part.needs_gradient else product.features) * has_backward)
