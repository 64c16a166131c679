"""Looks at the operators of some steps, and keeps what is asked of them afterwards."""

from __future__ import annotations

import sys
from typing import Any

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import CallPaths
from deepscope.capture.audit.flow import Flow, tensors_of
from deepscope.capture.audit.gradients import Gradient, Gradients
from deepscope.capture.lines import UserCode
from deepscope.errors import RecorderError

_MOST_OPERATORS = 500_000
_NORMS = frozenset({"aten::_foreach_norm", "aten::linalg_vector_norm", "aten::norm", "aten::_foreach_max"})
_ZEROING = frozenset({"aten::zero_", "aten::_foreach_zero_"})


class Watch:
    """What is noted of each operator; `step` is the number of the step that runs."""

    def __init__(self, code: UserCode) -> None:
        self.paths = CallPaths(code)
        self.flow = Flow()
        self.gradients = Gradients(self.flow)
        self.step = 0
        self.passes: list[int] = []
        """By backward pass: the path of the line that called it."""
        self._path_of_node: dict[int, int] = {}
        """By the number of a node of autograd's graph: the path of its forward operator."""
        self._is_in_pass = False
        self._last_path = 0
        self._gradient: Gradient | None = None
        """The one that is being given to its parameter."""

    def note(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """An operator has returned."""
        if len(self.flow.operations) > _MOST_OPERATORS:
            raise RecorderError(f"a step has more than {_MOST_OPERATORS:,} operators")
        node = torch_compat.running_node()
        call = self.paths.call_from(sys._getframe(2))
        if node is None:
            self._is_in_pass = False
            self._path_of_node.setdefault(torch_compat.next_node_number() - 1, call.path)
        elif not self._is_in_pass:
            self._is_in_pass = True
            self.passes.append(call.path)
        if node is not None and torch_compat.gathers_gradient(node):
            self._accumulate(node.variable, function, args, result, call)
            return
        self._gradient = None
        added = self.flow.add(function, args, kwargs, result, call=call, step=self.step)
        if node is not None:
            self._note_backward(node, added, call.path)
            return
        for number in added:
            name = self.flow.operations[number].name
            if call.is_clipping and name in _NORMS:
                self.flow.drop(number)
        if added:
            name = self.flow.operations[added[0]].name
            if name in _ZEROING:
                for tensor in tensors_of(args):
                    self.gradients.clear(tensor)
            elif call.is_clipping and name in _NORMS:
                for tensor in tensors_of(args):
                    self.gradients.clip(tensor)

    def _note_backward(self, node: Any, added: range, path: int) -> None:
        self._last_path = self._path_of_node.get(int(node._sequence_nr()), 0) or self._last_path
        has_own_code = path not in (0, self.passes[-1])
        for number in added:
            operation = self.flow.operations[number]
            operation.pass_number = len(self.passes) - 1
            operation.forward_path = path if has_own_code else self._last_path
            operation.has_user_code = has_own_code

    def _accumulate(self, parameter: Any, function: Any, args: tuple[Any, ...], result: Any, call: Any) -> None:
        one = self._gradient
        if one is None or one.parameter() is not parameter:
            one = self._gradient = self.gradients.begin(parameter, adds=function._schema.name.startswith("aten::add"))
        added = self.flow.add(function, args, {}, result, call=call, step=self.step)
        given = [*tensors_of((*args, result))]
        numbers = list(added) or [self.flow.pass_on(function._schema.name, given[0], call, self.step)]
        for number in numbers:
            operation = self.flow.operations[number]
            operation.pass_number, operation.forward_path = len(self.passes) - 1, self._last_path
            operation.has_user_code = False
        self.gradients.accumulate(one, numbers, given)
