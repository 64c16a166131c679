"""Names and shapes of operators and kernels as people read them; the trace's own names still identify them."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from deepscope.printable import printable
from deepscope.records import PartKind, Profile
from deepscope.trace.communication import function_of

_LONGEST = 4000
"""A longer name is cut before it is read."""

_ENGINE = "autograd::engine::evaluate_function: "
_SPANS = {
    "<forward op>": "TorchScript graph",
    "<backward op>": "TorchScript graph, backward",
    "<forked function>": "TorchScript fork",
    "CompiledFunction": "compiled function",
    "CompiledFunctionBackward": "compiled function, backward",
}
"""What TorchScript's interpreter and torch.compile call their own spans."""
_KEY = 8
"""Letters of a compiled graph's key that tell it from others."""
_COMPILED_GRAPH = re.compile(r"## Call CompiledFxGraph (\S*) ##")
_COMPILED_REGION = re.compile(r"^Torch-Compiled Region\b:?")

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|`anonymous namespace'::|<unnamed>::|\{anonymous\}::")
_LAMBDA_CALL = re.compile(r"::\{lambda\([^()]*\)#\d+\}::operator\(\)\([^()]*\) const")
_LAST_LAMBDA = re.compile(r"(?:\([^()]*\))?::\{lambda\(([^()]*)\)#\d+\}")
_NAMESPACES = re.compile(r"\b(?:[A-Za-z_]\w*::)+")
_NODE_OF_EXTENSION = re.compile(r"CppNode<(.*)>")


@lru_cache(maxsize=65536)
def readable(name: str) -> str:
    """A name without what only its compiler needs: engine, namespaces, argument lists, lambdas within lambdas, keys.

    Two names may read alike (the same kernel for other types of argument). Operators that a program calls
    (`aten::mm`) stay as they are.
    """
    if name.startswith(_ENGINE):
        return f"autograd: {_readable_node(name.removeprefix(_ENGINE))}"
    return _readable_node(name)


def _readable_node(name: str) -> str:
    if graph := _COMPILED_GRAPH.fullmatch(name):
        key = "" if graph[1] == "None" else graph[1][:_KEY]
        return f"compiled graph {key}".rstrip()
    known = _SPANS.get(name) or _of_node(name)
    if known is None and ("(" in name or "<" in name):
        return _of_cpp(name)
    return known or _COMPILED_REGION.sub("compiled region", name)


def _of_node(name: str) -> str | None:
    """An autograd node that is not a generated one (`MmBackward0`): TorchScript's, the engine's, an extension's."""
    if name.endswith("DifferentiableGraphBackward"):
        return "TorchScript graph, backward"
    node = name.removeprefix("torch::autograd::")
    own = _NODE_OF_EXTENSION.fullmatch(node)
    if own:
        return f"{_without_namespaces(own[1])}, backward"
    return node if node != name else None


def _of_cpp(name: str) -> str:
    """A C++ function's name, its template's arguments with it."""
    text = _ANONYMOUS.sub("", name[:_LONGEST])
    text = _LAST_LAMBDA.sub(r"(\1)", _LAMBDA_CALL.sub("", text))
    return _without_namespaces(function_of(text)).replace(" >", ">").strip() or name


def _without_namespaces(text: str) -> str:
    return _NAMESPACES.sub("", text)


def place_name(kind: PartKind, name: str) -> str:
    """What a part of a line's work is, safe to print."""
    if kind == "other":
        return "(other)"
    return printable(readable(name) if kind in {"operator", "kernel"} else name)


def measured_words(profile: Profile) -> str:
    """What self times of a profile are."""
    return "device time" if profile.metric == "device" else "operators' CPU time"


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
