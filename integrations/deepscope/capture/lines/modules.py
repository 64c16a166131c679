"""Calls of `nn.Module`s as scopes, and the dotted path of each module; no hook of torch's own is touched.

Torch's global module hooks would make dynamo compile again. What is watched is the code object of `Module._call_impl`,
through which each call of each module passes, the user's and libraries' alike.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

from torch import nn

from deepscope.capture import torch_compat
from deepscope.capture.lines.frames import Stack
from deepscope.capture.lines.scopes import Slot
from deepscope.capture.lines.table import MODULE, LocalScopeRow, ScopeTable
from deepscope.trace.format.header import ModuleParameters

_MOST_COUNTED = 20_000
"""Modules whose parameters are counted."""


class ModuleCalls:
    """The modules seen in one window.

    Modules are held weakly: replicas of `DataParallel` and losses made on the fly die with their step, and their memory
    must not be kept. A slot whose module died goes to the next new module of the same class.
    """

    def __init__(
        self, table: ScopeTable, *, are_wanted: bool, on_outermost: Callable[[FrameType], None] | None = None
    ) -> None:
        self._table = table
        self._on_outermost = on_outermost
        call = getattr(nn.Module, "_call_impl", None) if are_wanted else None
        self.code: CodeType | None = getattr(call, "__code__", None)
        """None where this torch calls its modules in another way, too; then no module has a scope."""
        self._seen: dict[int, tuple[weakref.ref[Any], Slot]] = {}
        self._orphans: dict[int, list[Slot]] = {}
        """By `id` of the class, which `_classes` keeps: a metaclass of the user's may not let it be hashed."""
        self._classes: dict[int, type] = {}
        self._roots: list[weakref.ref[Any]] = []
        self.autocast = ""
        """The type that autocast gave to products where the first module was called; "" for none."""
        self.parameters: list[ModuleParameters] = []
        """Of the modules that live at the window's end; after `describe`."""

    def slot_of(self, stack: Stack, frame: FrameType) -> Slot:
        """The slot of the module that `frame`, one of `code` that starts above `stack`, calls."""
        if self._on_outermost is not None and not any(entry.code is self.code for entry in stack):
            self._on_outermost(frame)
        module = frame.f_locals.get("self")
        seen = self._seen.get(id(module))
        return seen[1] if seen is not None else self._meet(module, stack, frame)

    def is_new(self, frame: FrameType) -> bool:
        """Whether the module that `frame` calls has no slot yet."""
        return id(frame.f_locals.get("self")) not in self._seen

    def _meet(self, module: Any, stack: Stack, frame: FrameType) -> Slot:
        if not self._classes:
            self.autocast = torch_compat.autocast_type()
        kind = type(module)
        orphans = self._orphans.get(id(kind))
        slot = orphans.pop() if orphans else self._table.module()
        self._classes[slot.id] = kind
        if self._table.libraries is not None:
            self._table.libraries.meet(kind, "forward")
        key = id(module)

        def forget(_reference: weakref.ref[Any]) -> None:
            self._seen.pop(key, None)
            self._orphans.setdefault(id(kind), []).append(slot)

        self._seen[key] = (weakref.ref(module, forget), slot)
        if not any(entry.code is self.code for entry in stack):
            owner = module
            with suppress(Exception):  # a module of the user's that answers as it likes
                owner = _owner_of(module, frame)
            self._roots.append(weakref.ref(owner))
        return slot

    def describe(self) -> None:
        """Write each module's class, place and path into the table, and count parameters; after the window."""
        paths = self._paths()
        for number, kind in self._classes.items():
            file, line = "", 0
            with suppress(Exception):  # a class of the user's that answers as it likes
                file, line = _place_of(kind)
            self._table.rows[number] = LocalScopeRow(
                MODULE, file, line, kind.__qualname__, line, paths.get(number, ""), kind.__module__
            )

        living = ((slot.id, reference()) for reference, slot in list(self._seen.values())[:_MOST_COUNTED])
        self.parameters = [found for number, module in living if (found := _parameters(number, module)) is not None]

    def _paths(self) -> dict[int, str]:
        """Paths by scope number: each module's in the largest of the roots that hold it."""
        roots = {id(root): root for root in (reference() for reference in self._roots) if root is not None}
        trees: list[list[tuple[str, Any]]] = []
        for root in roots.values():
            with suppress(Exception):  # a module of the user's that answers as it likes
                trees.append(list(root.named_modules()))
        paths: dict[int, str] = {}
        for tree in sorted(trees, key=len, reverse=True):
            for path, module in tree:
                seen = self._seen.get(id(module))
                if seen is not None:
                    paths.setdefault(seen[1].id, torch_compat.uncompiled_path(path))
        return paths


def _parameters(number: int, module: Any) -> ModuleParameters | None:
    """The parameters of a module; None where it is gone, has none, or one whose size is not known yet."""
    try:
        own = sum(one.numel() for one in module.parameters(recurse=False))
        total = sum(one.numel() for one in module.parameters())
        return ModuleParameters(number, own, total) if total else None
    except Exception:  # noqa: BLE001 - classes of users may say anything; the trace then does not tell
        return None


def _owner_of(module: Any, frame: FrameType) -> Any:
    """The outermost module whose method is running and which holds `module`; the module itself where there is none.

    Lightning calls `training_step` as a method, so that the model itself is never called as a module.
    """
    owner = module
    held = {id(module)}
    outer = frame.f_back
    while outer is not None:
        if outer.f_code.co_varnames[:1] == ("self",):
            candidate = outer.f_locals.get("self")
            if (
                candidate is not None
                and issubclass(type(candidate), nn.Module)  # `__class__` of a proxy may raise
                and id(candidate) not in held
                and any(child is owner for child in candidate.modules())
            ):
                owner = candidate
                held.add(id(candidate))
        outer = outer.f_back
    return owner


def _place_of(kind: type) -> tuple[str, int]:
    """File and first line of the class's `forward`; ("", 0) where it has none in Python."""
    forward = inspect.unwrap(getattr(kind, "forward", kind))
    code = getattr(forward, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else ("", 0)
