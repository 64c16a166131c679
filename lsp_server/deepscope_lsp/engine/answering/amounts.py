"""The numbers that lines are sorted by, each as a share and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from deepscope.records import Numbers
from deepscope_lsp.answers import HOT_METRICS, HotAmount, HotMetric
from deepscope_lsp.engine.profile.scales import Scales
from deepscope_lsp.engine.wording import quantities

_FIELDS: dict[HotMetric, str] = {
    "cost": "cost_ns",
    "device": "self_device_ns",
    "cpu": "self_cpu_ns",
    "wait": "wait_ns",
    "idle": "idle_ns",
    "memory": "bytes_allocated",
}

_OF_STEPS = ("cost", "device")
"""Metrics of which a part may lie outside the steps."""

Value = Callable[[Numbers, HotMetric], int]


def own_value(numbers: Numbers, metric: HotMetric) -> int:
    """The number of a metric."""
    value: int = getattr(numbers, _FIELDS[metric])
    return value - numbers.framework_ns if metric == "cost" else value


def value_with_calls(numbers: Numbers, metric: HotMetric) -> int:
    """The same, device time with all that is called."""
    return numbers.total_device_ns if metric == "device" else own_value(numbers, metric)


def _outside_ns(numbers: Numbers, metric: HotMetric, value: Value) -> int:
    """The part of a cost or of device time that lies outside the steps."""
    if metric == "cost":
        return numbers.outside_ns + numbers.python_outside_ns
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
                outside = sum(_outside_ns(one, metric, self._value) for one in records) if metric in _OF_STEPS else 0
                share = self._share(value, metric)
                per_step = self._scales.per_step(value - outside)
                words = quantities.size(per_step) if metric == "memory" else quantities.duration(per_step)
                yield metric, HotAmount(share=share, words=f"{quantities.share(share)} · {words}")

    def _share(self, value: int, metric: HotMetric) -> float:
        """Of a cost or of work a part of the run's: some of it may have reached no line."""
        if metric == "cost":
            return self._scales.costs.share_of(value)
        return self._scales.share(value) if metric == "device" else value / self._wholes[metric]
