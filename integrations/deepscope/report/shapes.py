"""Shapes of arguments as people read them: `64x512 512 float32`."""

from __future__ import annotations

import json
from typing import Any

from deepscope.printable import printable

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
    kinds = [name for name in map(dtype_name, _words(dtypes)) if name]
    return printable(" ".join([*words, *dict.fromkeys(kinds)]))


def dtype_name(word: str) -> str:
    """torch's name of a type in C++ as Python has it; "" for what is no tensor."""
    return "" if word in _NO_TENSOR else _DTYPES.get(word, word.removeprefix("c10::"))


def _words(dtypes: str) -> list[str]:
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
