"""Shapes of arguments as people read them: `64x512 512 float32`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import Numbers, Profile

_DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
}
_NO_TENSOR = {"", "Scalar", "ScalarList", "TensorList", "None", "Device", "Stream", "Generator"}


def parsed(text: str) -> Any:
    """What the JSON text of an argument holds; None for none, the text itself where it is no JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def shapes_text(shapes: str, dtypes: str = "") -> str:
    """The tensors among some arguments, `64x512 512`, then the types of the first ones' elements."""
    found = parsed(shapes)
    if not isinstance(found, list):
        return printable(shapes)
    words = [word for one in found if (word := _tensor(one))]
    kinds = [name for name in map(dtype_name, _shapes_words(dtypes)) if name]
    return printable(" ".join([*words, *dict.fromkeys(kinds)]))


def dtype_name(word: str) -> str:
    """torch's name of a type in C++ as Python has it; "" for what is no tensor."""
    return "" if word in _NO_TENSOR else _DTYPES.get(word, word.removeprefix("c10::"))


def _shapes_words(dtypes: str) -> list[str]:
    found = parsed(dtypes)
    return [word for word in found if isinstance(word, str)] if isinstance(found, list) else []


def sizes_text(sizes: Any) -> str:
    """`64x512`; "" for what has no sizes."""
    return "x".join(map(str, sizes)) if isinstance(sizes, list) else ""


def _tensor(argument: Any) -> str:
    """One tensor, or how many a list has."""
    if not isinstance(argument, list) or not argument:
        return ""
    if isinstance(argument[0], list):
        first = sizes_text(argument[0]) or "()"
        return f"[{first}]" if len(argument) == 1 else f"[{first} and {len(argument) - 1} more]"
    return sizes_text(argument)


NO_LINE = "(no user line)"

Row = TypeVar("Row", bound=Numbers)
PARTS = 4
"""Parts that are named."""


def _field(profile: Profile) -> str:
    """Beside the work that it owns a line costs this."""
    return "idle_ns" if profile.metric == "device" else "python_ns"


def without_framework(row: Row, profile: Profile) -> Row:
    """The row without the framework's own part of its cost."""
    if not row.framework_ns:
        return row
    field = _field(profile)
    less = {"cost_ns": row.cost_ns - row.framework_ns, field: getattr(row, field) - row.framework_ns}
    return replace(row, **less, framework_ns=0)


class RestRow(Numbers):
    """A row with numbers and a name in place of a line."""

    name: str


def rest_rows(profile: Profile) -> list[RestRow]:
    """What no line has: each framework's own work, and the work of no user line."""
    sums: dict[str, int] = defaultdict(int)
    for part in profile.framework:
        sums[part.framework] += part.cost_ns
    rows = [RestRow(name=f"({printable(name)})", **{"cost_ns": ns, _field(profile): ns}) for name, ns in sums.items()]
    if any(getattr(profile.no_line, field) for field in Numbers.__struct_fields__):
        rows.append(RestRow(name=NO_LINE, **asdict(profile.no_line)))
    return rows


def framework_words(profile: Profile) -> dict[str, str]:
    """`(Framework)` → what it does: `its own loops 16.2ms, logging 3.22ms`."""
    costs: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for part in profile.framework:
        costs[part.framework][part.part] += part.cost_ns
    return {f"({printable(name)})": _framework_words(parts) for name, parts in costs.items()}


def _framework_words(parts: dict[str, int]) -> str:
    listed = sorted(parts.items(), key=lambda item: -item[1])
    named = [f"{printable(part)} {time_text(cost_ns)}" for part, cost_ns in listed[:PARTS]]
    rest = sum(cost_ns for _, cost_ns in listed[PARTS:])
    return "its own " + ", ".join([*named, *([f"others {time_text(rest)}"] if rest else [])])
