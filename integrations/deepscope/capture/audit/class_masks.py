"""Tensors that are compared with one number after the other, only to be counted, as metrics of classes are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

import torch

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import is_plain

_LEAST = 1 << 15
"""Elements. Comparisons of fewer are mostly calls (DS007)."""
_FEWEST = 3
"""Numbers that a tensor is compared with."""
_MOST_OF = 0.8
"""So many of the comparisons are counted and nothing else."""
_LEFT = 0.75
"""What counting all numbers at once takes, in comparisons of two tensors with one, and the counts of both."""
_LEAST_LEFT = 0.05
_COMBINED = frozenset(
    f"aten::{name}"
    for name in ("bitwise_and", "bitwise_or", "bitwise_not", "logical_and", "logical_or", "logical_not", "mul",
                 "_to_copy", "__and__", "__or__")
)  # fmt: skip
_COUNTED = frozenset(f"aten::{name}" for name in ("sum", "mean", "any", "count_nonzero"))


class ClassMasks:
    """Of the first step's forward work."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._masks: dict[Hashable, dict[float, set[int]]] = defaultdict(lambda: defaultdict(set))
        """By tensor and number: the comparisons."""
        self._held: dict[int, frozenset[int]] = {}
        """By storage: the comparisons that what it holds was made of, and of nothing else but masks."""
        self._since: dict[int, set[int]] = defaultdict(set)
        """By comparison: what combines it with others, and counts it."""
        self._counted: set[int] = set()
        self._used: set[int] = set()
        """Comparisons that something else reads."""

    def note(self, added: range, returned: Returned, *, makes: bool) -> None:
        """A forward operator has returned; `makes`: whether it is work of the first step."""
        if returned.is_view:
            return
        given = list(tensors_of(returned.given))
        masks = frozenset[int]().union(*(self._held.get(self._flow.key_of(one), ()) for one in given))
        for key in self._flow.keys_of(returned.written()):
            self._held.pop(key, None)
        is_alone = makes and len(added) == 1
        if masks and not (is_alone and self._goes_on(returned.name, given)):
            self._used |= masks
        elif masks:
            for mask in masks:
                self._since[mask].add(added[0])
            if returned.name in _COUNTED:
                self._counted |= masks
            else:
                self._hold(returned, masks)
        elif (
            is_alone
            and returned.name == "aten::eq"
            and _is_large(given[0])
            and isinstance(returned.args[1], (int, float))
        ):
            source = given[0]
            lies = (source.storage_offset(), tuple(source.shape), tuple(source.stride()))
            compared = (self._flow.key_of(source), *self._flow.writers_of(source), lies)
            self._masks[compared][returned.args[1]].add(added[0])
            self._hold(returned, frozenset(added))

    def all(self, _: Mapping[int, Sequence[int]]) -> Iterator[Choice]:
        """One for the tensors that are counted together."""
        groups: dict[int, tuple[set[int], int]] = {}
        of_member: dict[int, int] = {}
        for number, by_number in enumerate(self._masks.values()):
            every = set[int]().union(*by_number.values())
            good = {one for one in every & self._counted - self._used if not self._flow.operations[one].is_sink}
            if len(by_number) < _FEWEST or len(good) < _MOST_OF * len(every):
                continue
            members, classes = good.union(*(self._since[one] for one in good)), len(by_number)
            for other in {of_member[one] for one in members if one in of_member}:
                others, count = groups.pop(other)
                members, classes = members | others, max(classes, count)
            groups[number] = members, classes
            of_member.update(dict.fromkeys(members, number))
        for members, classes in groups.values():
            yield Choice("classes", min(members), frozenset(members), max(_LEFT / classes, _LEAST_LEFT))

    def members(self) -> set[int]:
        """All operations of these."""
        return set[int]().union(*(one.members for one in self.all({})))

    def _goes_on(self, name: str, given: Sequence[torch.Tensor]) -> bool:
        """Whether an operator combines masks, of classes or of others, or counts one."""
        are_masks = all(
            one.dtype == torch.bool or not _is_large(one) or self._flow.key_of(one) in self._held for one in given
        )
        return name in _COUNTED or (name in _COMBINED and are_masks)

    def _hold(self, returned: Returned, masks: frozenset[int]) -> None:
        key = self._flow.key_of(returned.result) if isinstance(returned.result, torch.Tensor) else 0
        if not key:
            self._used |= masks
        else:
            self._held[key] = masks


def _is_large(tensor: torch.Tensor) -> bool:
    return is_plain(tensor) and tensor.layout is torch.strided and tensor.numel() >= _LEAST
