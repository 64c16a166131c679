"""Names of operators and kernels as people read them; the trace's own names still identify them."""

from __future__ import annotations

import re
from functools import lru_cache

from deepscope.trace.cpp_names import function_of

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
        return f"autograd: {readable(name[len(_ENGINE) :])}"
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
