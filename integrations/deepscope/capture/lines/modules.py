"""Calls of `nn.Module`s as scopes, and the dotted path of each module; no hook of torch's own is touched.

Torch's global module hooks would make dynamo compile again. What is watched is the code object of `Module._call_impl`,
through which each call of each module passes, the user's and libraries' alike.
"""

from __future__ import annotations

import inspect
import weakref
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from torch import nn

from deepscope.capture.lines.calibration import CostSamples, Work
from deepscope.capture.lines.table import MODULE, Function, ScopeRow, ScopeTable, Slot

if TYPE_CHECKING:
    from deepscope.capture.lines.running_frame import Stack
    from deepscope.capture.lines.stacks import Stacks

__all__ = ["ModuleCalls"]


class ModuleCalls:
    """The modules seen in one window.

    Modules are held weakly: replicas of `DataParallel` and losses made on the fly die with their step, and their memory
    must not be kept. A slot whose module died goes to the next new module of the same class.
    """

    def __init__(self, table: ScopeTable, costs: CostSamples) -> None:
        self._table = table
        self._costs = costs
        self.stacks: Stacks
        call = getattr(nn.Module, "_call_impl", None)
        self.code: CodeType | None = getattr(call, "__code__", None)
        """None where this torch calls its modules in another way; then no module has a scope."""
        self._seen: dict[int, tuple[weakref.ref[Any], Slot]] = {}
        self._orphans: dict[type, list[Slot]] = {}
        self._classes: dict[int, type] = {}
        self._roots: list[weakref.ref[Any]] = []

    def enter(self, stack: Stack, function: Function, frame: FrameType) -> None:
        """A frame of `_call_impl` starts: open the scope of the module that it calls."""
        if self._costs.is_complete:
            self._enter(stack, function, frame)
            return
        met, started = len(self._seen), perf_counter_ns()
        self._enter(stack, function, frame)
        if len(self._seen) == met:
            self._costs.add(Work.MODULE, perf_counter_ns() - started)

    def _enter(self, stack: Stack, function: Function, frame: FrameType) -> None:
        module = frame.f_locals.get("self")
        seen = self._seen.get(id(module))
        slot = seen[1] if seen is not None else self._meet(module, stack, frame)
        slot.left -= 1
        stacks = self.stacks
        if not stacks.spare or (stack and stack[-1].is_special):
            stacks.enter(stack, function)
            stacks.run(stack, slot, 0)
            return
        entry = stacks.spare.pop()
        function.calls += 1
        entry.code = function.code
        entry.function = function
        entry.line = 0
        entry.is_special = False
        entry.pair = pair = slot.pool.pop() if slot.pool else slot.pair()
        entry.pool = slot.pool
        stack.append(entry)
        pair[0]()

    def _meet(self, module: Any, stack: Stack, frame: FrameType) -> Slot:
        kind = type(module)
        orphans = self._orphans.get(kind)
        slot = orphans.pop() if orphans else self._table.module()
        self._classes[slot.id] = kind
        key = id(module)

        def forget(_reference: weakref.ref[Any]) -> None:
            self._seen.pop(key, None)
            self._orphans.setdefault(kind, []).append(slot)

        self._seen[key] = (weakref.ref(module, forget), slot)
        if not any(entry.code is self.code for entry in stack):
            self._roots.append(weakref.ref(_owner_of(module, frame)))
        return slot

    def describe(self) -> None:
        """Write each module's class, place and path into the table; after the window."""
        paths = self._paths()
        for number, kind in self._classes.items():
            file, line = _place_of(kind)
            self._table.rows[number] = ScopeRow(
                MODULE, file, line, kind.__qualname__, line, paths.get(number, ""), kind.__module__
            )

    def _paths(self) -> dict[int, str]:
        """Paths by scope number: each module's in the largest of the roots that hold it."""
        roots = {id(root): root for root in (reference() for reference in self._roots) if root is not None}
        trees = [list(root.named_modules()) for root in roots.values()]
        paths: dict[int, str] = {}
        for tree in sorted(trees, key=len, reverse=True):
            for path, module in tree:
                seen = self._seen.get(id(module))
                if seen is not None:
                    paths.setdefault(seen[1].id, _without_wrapper(path))
        return paths


def _without_wrapper(path: str) -> str:
    """The path less the component that `torch.compile` puts around a module."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


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
                isinstance(candidate, nn.Module)
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
