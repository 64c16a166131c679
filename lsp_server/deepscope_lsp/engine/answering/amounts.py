"""The numbers that lines are sorted by, each as a share and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from deepscope.records import Numbers
from deepscope_lsp.answers import HOT_METRICS, HotAmount, HotMetric
from deepscope_lsp.engine.profile.scales import Scales
from deepscope_lsp.engine.wording import quantities

__all__ = ["Amounts", "own_value", "value_with_calls"]

_FIELDS: dict[HotMetric, str] = {
    "device": "self_device_ns",
    "cpu": "self_cpu_ns",
    "wait": "wait_ns",
    "idle": "idle_ns",
    "memory": "bytes_allocated",
}

Value = Callable[[Numbers, HotMetric], int]


def own_value(numbers: Numbers, metric: HotMetric) -> int:
    """The number of a metric."""
    value: int = getattr(numbers, _FIELDS[metric])
    return value


def value_with_calls(numbers: Numbers, metric: HotMetric) -> int:
    """The same, device time with all that is called."""
    return numbers.total_device_ns if metric == "device" else own_value(numbers, metric)


def _outside_ns(numbers: Numbers, value: Value) -> int:
    """The part of the device time that lies outside the steps."""
    return numbers.total_outside_ns if value is value_with_calls else numbers.outside_ns


class Amounts:
    """Makes the amounts of records: each a part of what all records have together.

    Args:
        records: all that there are.
        scales: the scales of their profile.
        value: the number of a record.
    """

    def __init__(self, records: Sequence[Numbers], scales: Scales, value: Value = own_value) -> None:
        self._scales = scales
        self._value = value
        self._wholes = {metric: sum(value(one, metric) for one in records) for metric in HOT_METRICS}

    def of(self, *records: Numbers) -> dict[str, HotAmount]:
        """The amounts of some records together, by metric; those that are 0 are left out."""
        return dict(self._amounts(records))

    def _amounts(self, records: Sequence[Numbers]) -> Iterable[tuple[str, HotAmount]]:
        for metric in HOT_METRICS:
            if value := sum(self._value(one, metric) for one in records):
                # The whole of device time is the busy time: some of it may have reached no line.
                share = self._scales.share(value) if metric == "device" else value / self._wholes[metric]
                outside = sum(_outside_ns(one, self._value) for one in records) if metric == "device" else 0
                per_step = self._scales.per_step(value - outside)
                words = quantities.size(per_step) if metric == "memory" else quantities.duration(per_step)
                yield metric, HotAmount(share=share, words=f"{quantities.share(share)} · {words}")
