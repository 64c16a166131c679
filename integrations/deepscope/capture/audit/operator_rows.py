"""Operators that compute each row of their result from one row of some arguments, and those that take rows out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.operator_calls import (
    ATTENTION,
    MATRIX_PRODUCTS,
    OperatorCall,
    aten,
    is_plain,
    is_pointwise,
)

Sizes = tuple[int, ...]
Places = npt.NDArray[np.int64]
"""Where in a storage something begins, in elements; shape (places,)."""

MOST = 1 << 22
"""Places that are looked at one by one."""
_FINE = 1 << 20
"""Of so small a result by element each element is a row, of larger ones what lies along the last dimension."""
_BY_ELEMENT = aten("_to_copy clone native_dropout masked_fill threshold hardtanh hardswish elu leaky_relu")
"""Operators by element that some versions of torch do not tag as such."""
_NORMS = aten("native_layer_norm _fused_rms_norm")
_SOFTMAX = aten("_softmax _log_softmax")
_REDUCTIONS = aten("mean sum prod amax amin argmax logsumexp var linalg_vector_norm")
_RESIZING = ("aten::upsample_", "aten::_upsample_")
_RESIZED_DIMENSIONS = 2
"""Samples and channels, of each of which an image is resized by itself."""
_LOOKUP = "aten::embedding"
_PLACES = {"aten::addmm": 1, "aten::baddbmm": 1, _LOOKUP: 1}
"""Which argument has the rows, where that is not the first."""


class Rows(NamedTuple):
    """The rows of a result, and which arguments it needs one row of for each."""

    dimensions: int
    """So many of the result's first ones count its rows."""
    arguments: frozenset[int] | None
    """Whose first dimensions are those of the result; None for all, expanded to the result's shape."""
    along: int = -1
    """The dimension of the result and of these arguments that counts as their last one."""

    def laid_out(self, tensor: torch.Tensor) -> tuple[Sizes, Sizes]:
        """The shape and the strides of a result, or of an argument that is read row by row, its rows first."""
        shape, strides = list(tensor.shape), list(tensor.stride())
        if self.along != -1:
            shape.append(shape.pop(self.along))
            strides.append(strides.pop(self.along))
        return tuple(shape), tuple(strides)

    def read(self, place: int, argument: torch.Tensor, result: torch.Tensor) -> tuple[Sizes, Sizes] | None:
        """Shape and strides of what is read of an argument, its rows first; None where all is read for each row."""
        if self.arguments is None:
            return _expanded(argument, tuple(result.shape))
        if place not in self.arguments:
            return None
        found = self.laid_out(argument)
        return found if found[0][: self.dimensions] == self.laid_out(result)[0][: self.dimensions] else None


def is_by_element(name: str, function: Any) -> bool:
    """Whether an operator computes each element of its result from one of each argument."""
    return is_pointwise(function) or name.removesuffix("_") in _BY_ELEMENT


def rows_of(name: str, call: OperatorCall, result: torch.Tensor) -> Rows | None:
    """What an operator makes row by row; None where it does not."""
    if is_by_element(name, call.function):
        is_fine = result.numel() <= _FINE
        return Rows(result.dim() if is_fine else max(result.dim() - 1, 0), None)
    if name in _SOFTMAX and result.dim():
        return Rows(result.dim() - 1, frozenset({0}), int(call.args[1]) % result.dim() - result.dim())
    dimensions = _leading_dimensions(name, call, result)
    return None if dimensions is None else Rows(dimensions, frozenset({_PLACES.get(name, 0)}))


def _leading_dimensions(name: str, call: OperatorCall, result: torch.Tensor) -> int | None:
    """How many count the rows of what is no operator by element."""
    args = call.args
    last: int = args[0].dim() - 1 if args and isinstance(args[0], torch.Tensor) else -1
    if name in MATRIX_PRODUCTS or name == _LOOKUP:
        return int(result.dim()) - 1
    if name.startswith(ATTENTION):
        return 3 if result.dim() == 4 else None
    if name.startswith(_RESIZING):
        return _RESIZED_DIMENSIONS
    is_along_last = (name in _NORMS and len(args[1]) == 1) or (name in _REDUCTIONS and _is_over_last(call, last))
    return last if last >= 0 and is_along_last else None


def reads_shape_alone(name: str) -> bool:
    """Whether an operator makes a tensor like another one, whose elements it does not read."""
    return name.endswith("_like") or name.startswith("aten::new_")


def _is_over_last(call: OperatorCall, last: int) -> bool:
    """Whether a reduction goes along the last dimension and no other."""
    names = [one.name for one in call.function._schema.arguments]
    if "dim" not in names or last < 0:
        return False
    place = names.index("dim")
    dim = call.args[place] if len(call.args) > place else call.kwargs.get("dim")
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    return [one % (last + 1) for one in dims] == [last]


def _expanded(argument: torch.Tensor, shape: Sizes) -> tuple[Sizes, Sizes] | None:
    more = len(shape) - argument.dim()
    sizes, strides = (1,) * more + tuple(argument.shape), (0,) * more + tuple(argument.stride())
    if more < 0 or any(size not in (1, wanted) for size, wanted in zip(sizes, shape, strict=True)):
        return None
    return shape, tuple(0 if size == 1 else stride for size, stride in zip(sizes, strides, strict=True))


_TAKING = aten("index index_select gather")
_LOSSES = aten("nll_loss_forward nll_loss2d_forward")


class Taken(NamedTuple):
    """What is read of a tensor: a part of this shape and these strides at each of these places."""

    starts: Places
    shape: Sizes
    strides: Sizes
    ignored: int | None = None
    """The target whose rows a loss leaves out."""


def taken_from(name: str, args: Sequence[Any]) -> Taken | None:
    """What an operator takes of its first argument by indices or targets; None where it takes none, or too many."""
    if name in _LOSSES:
        return _with_targets(args)
    if name not in _TAKING or not is_plain(args[0]):
        return None
    source: torch.Tensor = args[0]
    with torch_compat.without_modes(), torch.no_grad():
        if name == "aten::index":
            count = sum(one.dim() if one is not None and not _has_places(one) else 1 for one in args[1])
            places = _places(source, count)
            taken = None if places is None else torch.ops.aten.index.Tensor(places, args[1])
            inner = tuple(source.shape[count:])
        else:
            dimension, index = int(args[1]), args[2]
            if not source.dim() or not index.dim() or not index.numel():
                return None
            dimension %= source.dim()
            count = dimension + 1
            if name == "aten::gather":
                varying = [at for at, stride in enumerate(index.stride()) if stride and index.size(at) > 1]
                count = max([count, *(at + 1 for at in varying)])
                inner = tuple(index.shape[count:])
                for _ in inner:
                    index = index.select(-1, 0)
            else:
                inner = tuple(source.shape[count:])
            places = _places(source, count)
            take = torch.gather if name == "aten::gather" else torch.index_select
            taken = None if places is None else take(places, dimension, index)
    if taken is None or taken.numel() > MOST:
        return None
    return Taken(taken.reshape(-1).cpu().numpy(), inner, tuple(source.stride()[count:]))


def _with_targets(args: Sequence[Any]) -> Taken | None:
    """What a loss reads of the logarithms of probabilities: not the rows whose target is the one to ignore."""
    source, target, _, _, ignored = args[:5]
    if not (is_plain(source) and is_plain(target)) or target.numel() > MOST or source.dim() < 2:
        return None
    with torch_compat.without_modes(), torch.no_grad():
        rows = source.detach().movedim(1, -1)
        places = _places(rows, rows.dim() - 1)
        if places is None or places.shape != target.shape:
            return None
        counted = places[target != ignored].cpu().numpy()
    return Taken(counted, (rows.size(-1),), (rows.stride(-1),), int(ignored))


def _has_places(index: torch.Tensor) -> bool:
    """Whether an index has numbers of places; else it is a mask."""
    return index.dtype not in (torch.bool, torch.uint8)


def _places(tensor: torch.Tensor, dimensions: int) -> torch.Tensor | None:
    """Where each of what the first dimensions count begins in the storage; None for too many."""
    shape = tuple(tensor.shape[:dimensions])
    if prod(shape) > MOST:
        return None
    found = torch.full((1,) * dimensions, tensor.storage_offset(), device=tensor.device)
    for at, (size, stride) in enumerate(zip(shape, tensor.stride(), strict=False)):
        steps = torch.arange(size, device=tensor.device) * stride
        found = found + steps.view((size,) + (1,) * (dimensions - 1 - at))
    return found
