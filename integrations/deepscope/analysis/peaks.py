"""The peaks that a profile is judged by: those a user gives before those of the table of devices."""

from __future__ import annotations

import math

from deepscope.analysis.numbers.device_peaks import DevicePeak, peak_of
from deepscope.errors import OptionError
from deepscope.records import Peaks

_TERA = 1e12
_NAMES = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "tf32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8",
}
_NAMES |= {name: name for name in _NAMES.values()}
_BANDWIDTH = "bandwidth"
_FORM = (
    "wanted is such as 'fp32=67,bf16=989,bandwidth=3.35': 10^12 operations a second by type (fp64, fp32, tf32, bf16, "
    "fp16, fp8), and 10^12 bytes a second"
)


def given_peaks(text: str) -> dict[str, float]:
    """What a user gives, by type of floats or `bandwidth`, in operations or bytes a second.

    Raises:
        OptionError: it cannot be read; the message says which part, and what is wanted.
    """
    found: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        word, equals, number = (piece.strip() for piece in part.partition("="))
        name = _BANDWIDTH if word.lower() == _BANDWIDTH else _NAMES.get(word.lower(), "")
        value = _number(number)
        if not equals or not name or value is None:
            raise OptionError("peaks", text, f"{part!r} cannot be used; {_FORM}")
        if name in found:
            raise OptionError("peaks", text, f"{word} is there twice")
        found[name] = value * _TERA
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < 1e9 else None


def peaks_of(device: str, given: str = "") -> Peaks | None:
    """The peaks of a device by its name; what is `given` replaces what the table has.

    None where the bandwidth is not known.

    Raises:
        OptionError: as `given_peaks`.
    """
    chosen = given_peaks(given)
    known = _known(device)
    rates = {} if known is None else _rates(known)
    bandwidth = chosen.pop(_BANDWIDTH, 0.0) or (known.memory_bytes_per_s if known is not None else 0.0)
    if not bandwidth:
        return None
    return Peaks(
        name=known.name if known is not None else device,
        flops_per_s=rates | chosen,
        memory_bytes_per_s=float(bandwidth),
        source="given" if given.strip() or known is None else known.source,
    )


def _known(device: str) -> DevicePeak | None:
    """Of several devices (`NVIDIA A100, NVIDIA H100`) none: what several ranks did is added up."""
    found = {peak_of(one) for one in device.split(", ")}
    return found.pop() if len(found) == 1 else None


def _rates(known: DevicePeak) -> dict[str, float]:
    return {name: float(rate) for name in _NAMES.values() if (rate := known.rate(name)) is not None}
