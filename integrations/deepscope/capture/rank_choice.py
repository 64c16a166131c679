"""Which ranks record: numbers, ranges of them in words, or one of each host."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable

from deepscope.capture.notices import warn
from deepscope.errors import OptionError

HOSTS = "hosts"
"""The first rank of each host."""

RankChoice = frozenset[int] | str | None
"""The numbers; `HOSTS`; None for all."""

OFF_VARIABLE = "DEEPSCOPE_OFF"
"""Where the environment has it, no rank records: a program that is only to be timed runs as without DeepScope in it."""

_MOST = 1 << 20
"""Ranks that may be named."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def checked_ranks(given: Collection[int | str] | int | str) -> RankChoice:
    """What was given, understood: 3, [0, 8], "0,8-15", "hosts", "all".

    Raises `OptionError` for anything else.
    """
    items: Collection[object] = (given,) if isinstance(given, str) or not isinstance(given, Collection) else given
    words = [item.strip() for item in items if isinstance(item, str)]
    if len(words) == len(items) == 1 and words[0] in (HOSTS, "all"):
        return HOSTS if words[0] == HOSTS else None
    chosen: set[int] = set()
    for item in items:
        for numbers in _ranges(item):
            if len(chosen) + len(numbers) > _MOST:
                raise OptionError("ranks", given, f"may name {_MOST:,} ranks at most")
            chosen.update(numbers)
    if not all(_is_rank(item) for item in items):
        raise OptionError("ranks", given, 'must be rank numbers, 0 or more, such as [0, 8] or "0,8-15", or "hosts"')
    return frozenset(chosen)


def is_chosen(choice: RankChoice, rank: int, local_rank: int) -> bool:
    """Whether a rank records; `local_rank` counts on its host."""
    if os.environ.get(OFF_VARIABLE):
        return False
    if choice is None:
        return True
    return local_rank == 0 if isinstance(choice, str) else rank in choice


def first_rank(choice: RankChoice) -> int:
    """The lowest of the ranks that record."""
    return 0 if choice is None or isinstance(choice, str) else min(choice, default=0)


def warn_if_nobody(choice: RankChoice, rank: int, world_size: int) -> None:
    """Tell on rank 0 that none of the ranks that there are records."""
    if rank == 0 and first_rank(choice) >= world_size > 1:
        warn(f"nothing is recorded: ranks= names none of the {world_size} ranks that there are")


def _is_rank(item: object) -> bool:
    if isinstance(item, str):
        return all(_numbers(part) is not None for part in item.split(","))
    return isinstance(item, int) and not isinstance(item, bool) and item >= 0


def _ranges(item: object) -> Iterable[range]:
    if isinstance(item, str):
        return [numbers for part in item.split(",") if (numbers := _numbers(part)) is not None]
    return [range(item, item + 1)] if isinstance(item, int) else []


def _numbers(part: str) -> range | None:
    found = _RANGE.fullmatch(part.strip())
    numbers = None if found is None else range(int(found[1]), int(found[2] or found[1]) + 1)
    return numbers or None
