"""How long Lightning's sanity check takes, without what recording does in it."""

from __future__ import annotations


class SanityCheck:
    """The actions of a run's sanity check that say where it stands, as they are handled."""

    def __init__(self) -> None:
        self.is_over = False
        """Training has begun."""
        self._begun_ns = 0
        self._until_ns = 0
        self._own_ns = 0

    def note(self, start_ns: int, end_ns: int) -> None:
        """Recording was busy with such an action from `start_ns` to `end_ns`; it opens windows then, and saves them."""
        if self._begun_ns:
            self._own_ns += end_ns - start_ns
        else:
            self._begun_ns = end_ns
        self._until_ns = end_ns

    @property
    def duration_ns(self) -> int:
        """From the first to the last of the actions; 0 where there was no check."""
        return max(self._until_ns - self._begun_ns - self._own_ns, 0)
