"""How an audit is told what runs: a dispatch mode shows operators, replaced methods what no operator shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch
from torch.utils import _python_dispatch as dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.capture.process_hooks.signals import comes_from_handler

Note = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]
"""Called with an operator, its arguments and its result."""


class AuditMode(TorchDispatchMode):  # type: ignore[misc]  # torch has no types for it
    """Calls `note` behind each operator of the thread that entered it, and of autograd's threads that work for it.

    It changes nothing of what is computed. An exception of `note` ends the notes, and `on_error` is told of it.
    """

    supports_higher_order_operators = True

    def __init__(self, note: Note, on_error: Callable[[Exception], None]) -> None:
        super().__init__()
        self._note: Note | None = note
        self._on_error = on_error
        self._process = os.getpid()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Dynamo is not in use; torch would import it for a wrapper around each call."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls the operator as it would be called without a mode."""
        del types
        named = kwargs or {}
        result = func(*args, **named)
        note = self._note
        if note is not None and os.getpid() == self._process:
            try:
                note(func, args, named, result)
            except Exception as error:
                self._note = None
                if comes_from_handler(error):
                    raise
                self._on_error(error)
        return result

    def mute(self) -> None:
        """Show no more operators; for a thread that may not leave it."""
        self._note = None

    def leave(self) -> None:
        """Take the mode off this thread's stack; modes that were entered since stay."""
        self._note = None
        above = []
        while dispatch._get_current_dispatch_mode_stack():
            top = dispatch._pop_mode()
            if top is self:
                dispatch._push_mode(self)  # its flags are put back as it is left
                self.__exit__(None, None, None)
                break
            above.append(top)
        for mode in reversed(above):
            dispatch._push_mode(mode)


def is_another_active() -> bool:
    """Whether a dispatch mode is on this thread's stack."""
    return bool(dispatch._get_current_dispatch_mode_stack())


_METHODS = (
    "numpy",
    "tolist",
    "data_ptr",
    "storage",
    "_typed_storage",
    "untyped_storage",
    "share_memory_",
    "__dlpack__",
    "__reduce_ex__",
    "__repr__",
)
"""`__array__`, `deepcopy`, Numba and Triton go through one of them."""
_DEEP_COPY = frozenset(one.__code__ for one in (torch.Tensor.__deepcopy__, torch.Tensor._typed_storage))
"""They ask for the storage, which is then copied by operators."""
_OF_TORCH = ("torch", "torchvision", "torchaudio")
_KINDS = ("torch.Tensor", "at::Tensor")
"""As pybind11 writes them in a function's signature."""


_OF_ELEMENTS = frozenset({"numpy", "tolist"})
"""They give a tensor's own elements away, and nothing else of its storage."""


class UnseenUses:
    """Has `see(tensor, is_storage)` called when a method of `torch.Tensor` gives its bytes away, until `end`.

    `is_storage`: with those of its whole storage.
    """

    def __init__(self, see: Callable[[torch.Tensor, bool], None]) -> None:
        self._see: Callable[[torch.Tensor, bool], None] | None = see
        self._before: dict[str, Any] = {}
        """What the class itself had under each name; methods that it inherits are not among them."""
        self._own = {name: self._watched(name) for name in _METHODS if hasattr(torch.Tensor, name)}

    def begin(self) -> None:
        """Take the methods' places."""
        for name, method in self._own.items():
            if name in torch.Tensor.__dict__:
                self._before[name] = torch.Tensor.__dict__[name]
            setattr(torch.Tensor, name, method)

    def end(self) -> None:
        """Put back what was there; what somebody put over ours stays, and ours only passes calls on."""
        self._see = None
        for name, method in self._own.items():
            if torch.Tensor.__dict__.get(name) is not method:
                continue
            if name in self._before:
                setattr(torch.Tensor, name, self._before[name])
            else:
                delattr(torch.Tensor, name)

    def _watched(self, name: str) -> Callable[..., Any]:
        method = getattr(torch.Tensor, name)

        def watched(self_: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            see = self._see
            if see is not None and sys._getframe(1).f_code not in _DEEP_COPY:
                with suppress(Exception):
                    see(self_, name not in _OF_ELEMENTS)
            return method(self_, *args, **kwargs)

        watched.__name__, watched.__qualname__, watched.__doc__ = name, f"Tensor.{name}", method.__doc__
        return watched


def foreign_extensions() -> list[str]:
    """Compiled modules from outside torch with functions of tensors, which no operator shows; by pybind11's docs."""
    return [name for name, module in list(sys.modules.items()) if _takes_tensors(name, module)]


def _takes_tensors(name: str, module: ModuleType) -> bool:
    is_compiled = str(getattr(module, "__file__", None) or "").endswith((".so", ".pyd"))
    if not is_compiled or name.partition(".")[0] in _OF_TORCH:
        return False
    docs = (str(getattr(one, "__doc__", None)) for one in list(vars(module).values()) if callable(one))
    return any(kind in doc for doc in docs for kind in _KINDS)
