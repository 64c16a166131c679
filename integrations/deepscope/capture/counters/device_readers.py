"""What a vendor's library tells of GPUs: one call after the other, each tried once before it is relied on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deepscope.capture.counters.source import Series
from deepscope.trace.format.counters import DeviceFacts, MissingSensor

Reader = Callable[[], Sequence[float]]


class DeviceReaders:
    """Series with the calls that read them; what a device does not know is listed in `missing`."""

    def __init__(self, errors: tuple[type[Exception], ...]) -> None:
        """`errors`: by which the library says that it does not know something."""
        self.series: list[Series] = []
        self.devices: list[DeviceFacts] = []
        self.missing: list[MissingSensor] = []
        self._errors: tuple[type[Exception], ...] = (*errors, AttributeError, KeyError, TypeError, ValueError)
        self._readers: list[tuple[Reader, int]] = []
        """Each with how many values it gives."""

    def _add(self, series: Sequence[Series], read: Reader, *otherwise: Reader) -> None:
        """Series that the device may know; `otherwise` are other ways to read them."""
        problem = ""
        for way in (read, *otherwise):
            try:
                way()
            except self._errors as error:
                problem = problem or str(error)
                continue
            self.series += series
            self._readers.append((way, len(series)))
            return
        self.missing.append(MissingSensor(f"{series[0].track} of {series[0].name.partition(' ')[0]}", problem))

    def read(self) -> Sequence[float]:
        """All devices' values; NaN for what is not told at this moment."""
        found: list[float] = []
        for read, width in self._readers:
            try:
                found += read()
            except self._errors:
                found += [float("nan")] * width
        return found

    def close(self) -> None:
        """Lets go of the library."""
