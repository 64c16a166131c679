"""The peaks that work is judged by: those a user gives, else what makers say of common devices."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from deepscope.errors import OptionError
from deepscope.records import Peaks

_TERA = 10**12
_GIGA = 10**9


@dataclass(frozen=True, slots=True)
class DevicePeak:
    """One model; operations a second without sparsity, None for what it has no units for."""

    name: str
    pattern: str
    """Searched in the name that the driver gives."""
    float32: float
    tf32: float | None
    bfloat16: float | None
    """float16 with sums in float32 runs at the same rate where both are there."""
    float16: float | None
    float8: float | None
    memory_bytes_per_s: float
    source: str

    def rate(self, dtype: str) -> float | None:
        """Operations a second in a type of floats (`float32`, `tf32`, `bfloat16`, …); None where it is not known."""
        rates = {
            "float32": self.float32,
            "tf32": self.tf32,
            "bfloat16": self.bfloat16,
            "float16": self.float16,
            "float8": self.float8,
        }
        return rates.get(dtype)

    @property
    def best_for_float32(self) -> float:
        """The fastest that products of float32 matrices become by TF32 or by bfloat16."""
        return max(self.float32, self.tf32 or 0.0, self.bfloat16 or 0.0)


def _model(
    name: str,
    pattern: str,
    rates: tuple[float, float | None, float | None, float | None, float | None],
    memory: float,
    source: str,
) -> DevicePeak:
    """`rates` in 10^12/s: float32, TF32, bfloat16, float16, float8; `memory` in 10^9 bytes/s."""
    float32, *others = rates
    tf32, bfloat16, float16, float8 = (None if rate is None else rate * _TERA for rate in others)
    assert float32 is not None
    return DevicePeak(name, pattern, float32 * _TERA, tf32, bfloat16, float16, float8, memory * _GIGA, source)


_V100 = "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf"
_T4 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf"
_A100 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-nvidia-us-2188504-web.pdf"
_H100 = "https://resources.nvidia.com/en-us-hopper-architecture/nvidia-h100-tensor-c"
_H200 = "https://www.nvidia.com/en-us/data-center/h200/"
_B200 = "https://resources.nvidia.com/en-us-blackwell-architecture"
_L4 = "https://www.nvidia.com/en-us/data-center/l4/"
_GA102 = "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"
_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_MI250X = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html"
_MI300X = "https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html"

# Makers' pages often state rates with sparsity: those are halved here. The first pattern that is found counts.
_MODELS = (
    _model("V100 SXM2", r"V100-SXM", (15.7, None, None, 125, None), 900, _V100),
    _model("V100 PCIe", r"V100", (14, None, None, 112, None), 900, _V100),
    _model("T4", r"\bT4\b", (8.1, None, None, 65, None), 300, _T4),
    _model("A100 80GB SXM", r"A100-SXM\S*-80GB", (19.5, 156, 312, 312, None), 2039, _A100),
    _model("A100 80GB PCIe", r"A100.*80GB", (19.5, 156, 312, 312, None), 1935, _A100),
    _model("A100 40GB", r"\bA100\b", (19.5, 156, 312, 312, None), 1555, _A100),
    _model("H100 NVL", r"H100 NVL", (60, 417.5, 835.5, 835.5, 1670.5), 3900, _H100),
    _model("H100 PCIe", r"H100.*PCIe", (51.2, 378, 756, 756, 1513), 2000, _H100),
    _model("H100 SXM", r"\bH100\b", (66.9, 494.7, 989.4, 989.4, 1978.9), 3350, _H100),
    _model("H200", r"\bH200\b", (66.9, 494.7, 989.4, 989.4, 1978.9), 4800, _H200),
    _model("B200", r"\bB200\b", (75, 1125, 2250, 2250, 4500), 8000, _B200),
    _model("L4", r"\bL4\b", (30.3, 60, 121, 121, 242.5), 300, _L4),
    # GeForce: products with sums in float32, as training has them, run at half the rate of float16 sums.
    _model("GeForce RTX 3090", r"RTX 3090(?! Ti)", (35.6, 35.6, 71, 71, None), 936, _GA102),
    _model("GeForce RTX 4090", r"RTX 4090(?! [DL])", (82.6, 82.6, 165.2, 165.2, 330.3), 1008, _ADA),
    # Each of its two dies is a device of its own, with half of what the page states.
    _model("MI250X, one die", r"MI250X", (47.9, None, 191.5, 191.5, None), 1638, _MI250X),
    _model("MI300X", r"MI300X", (163.4, 653.7, 1307.4, 1307.4, 2614.9), 5300, _MI300X),
)


def peak_of(device: str) -> DevicePeak | None:
    """The peak of a device by its name (`NVIDIA H100 80GB HBM3`); None for one that is not in the table."""
    return next((model for model in _MODELS if re.search(model.pattern, device)), None)


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
    "expected a list such as 'fp32=67,bf16=989,bandwidth=3.35': 10^12 operations a second by type (fp64, fp32, tf32, "
    "bf16, fp16, fp8), and 10^12 bytes a second"
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
            raise OptionError("peaks", text, f"{word} is given twice")
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
    # Of several devices (`NVIDIA A100, NVIDIA H100`) none is: what several ranks did is added up.
    devices = {peak_of(one) for one in device.split(", ")}
    known = devices.pop() if len(devices) == 1 else None
    rates = {name: float(rate) for name in _NAMES.values() if known and (rate := known.rate(name)) is not None}
    bandwidth = chosen.pop(_BANDWIDTH, 0.0) or (known.memory_bytes_per_s if known is not None else 0.0)
    if not bandwidth:
        return None
    return Peaks(
        name=known.name if known is not None else device,
        flops_per_s=rates | chosen,
        memory_bytes_per_s=float(bandwidth),
        source="given" if given.strip() or known is None else known.source,
    )
