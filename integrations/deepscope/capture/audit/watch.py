"""Looks at the operators of some steps, and keeps what is asked of them afterwards."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils.flop_counter  # the formulas that `flops_of` asks
from torch import nn
from torch.autograd.function import BackwardCFunction
from torch.optim import Optimizer

from deepscope.capture import torch_compat
from deepscope.capture.audit.cheaper_operators import CheaperOperators
from deepscope.capture.audit.class_masks import ClassMasks
from deepscope.capture.audit.constants import Constants, fixed_storages
from deepscope.capture.audit.copies import Copies, parameter_storages
from deepscope.capture.audit.diagonal_matrices import DiagonalMatrices
from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.gradients import Gradient, Gradients
from deepscope.capture.audit.joined_parts import JoinedParts
from deepscope.capture.audit.normalisations import Normalisations
from deepscope.capture.audit.operator_facts import is_plain
from deepscope.capture.audit.padding import Lookup, lookup_of
from deepscope.capture.audit.places import CallPaths, OperatorCall
from deepscope.capture.audit.repeated_rows import RepeatedRows
from deepscope.capture.audit.repeats import Repeats, Reruns
from deepscope.capture.audit.row_reads import RowReads
from deepscope.capture.audit.sample_values import SampleValues
from deepscope.capture.audit.slices import SliceUses
from deepscope.capture.audit.unseen_uses import UnseenUses
from deepscope.capture.lines import UserCode
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.errors import RecorderError


class GraphNodes:
    """Of some steps. Nodes go by their numbers; none is kept."""

    def __init__(self) -> None:
        self._paths: dict[int, int] = {torch_compat.next_node_number() - 1: 0}
        """By the number of a node: the path of its forward operator."""
        self._reached: set[int] = set()

    def made(self, path: int) -> int:
        """A forward operator was called from a path: the number of its new node; -1 where it has none."""
        number = torch_compat.next_node_number() - 1
        if number in self._paths:
            return -1
        self._paths[number] = path
        return number

    def path_of(self, node: Any) -> int:
        """Where the forward operator of a node was called; 0 if that is not known."""
        return self._paths.get(int(node._sequence_nr()), 0)

    def reach(self, node: Any) -> None:
        """A backward pass has come to a node, and so comes to all that the node leads to."""
        left = [node]
        while left:
            one = left.pop()
            number = int(one._sequence_nr())
            if number not in self._reached:
                self._reached.add(number)
                left += [above for above, _ in one.next_functions if above is not None]

    def is_reached(self, number: int) -> bool:
        """Whether a backward pass came to the node with a number."""
        return number in self._reached


_DENSE = {
    "aten::embedding_dense_backward": (2, None),
    "aten::_embedding_bag_backward": (6, 8),
    "aten::_embedding_bag_dense_backward": (5, 7),
}
"""Where each operator has the number of rows, and the mode of a bag; the second argument are the rows looked up."""
_MAX = 2
"""The mode of bags that has no sparse gradient."""
_SUMS = ("aten::add", "aten::add_")


class LookedUpRows:
    """Of each operation that makes the gradient of a whole table, by its number."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.used: dict[int, frozenset[int]] = {}
        self.rows: dict[int, int] = {}

    def note(self, number: int, returned: Returned) -> None:
        """An operation of a backward pass."""
        args = returned.args
        rows, mode = _DENSE.get(self._flow.operations[number].name, (len(args), None))
        if len(args) <= max(rows, mode or 0) or not is_plain(args[1]) or (mode is not None and args[mode] == _MAX):
            return
        self.used[number] = frozenset(args[1].unique().tolist())
        self.rows[number] = int(args[rows])

    def made_of(self, gradients: Sequence[Gradient]) -> list[int]:
        """The operations whose results a parameter's gradients are the sum of; none if there are others among them."""
        operations = self._flow.operations
        own = {number for one in gradients for number in one.operations}
        left, seen = list(own), set(own)
        found = []
        while left:
            number = left.pop()
            if number in self.rows:
                found.append(number)
            elif number in own or operations[number].name in _SUMS:
                new = operations[number].inputs - seen
                seen |= new
                left += new
            else:
                return []
        return sorted(found)


_ONE_HOT = frozenset({"aten::scatter", "aten::scatter_"})


def _ones_set(returned: Returned) -> int:
    """How many places of a tensor a call sets to one; 0 if it does something else."""
    index, value = returned.args[2:4] if len(returned.args) == 4 else (None, None)
    is_one = isinstance(value, (int, float)) and value == 1
    return index.numel() if is_one and isinstance(index, torch.Tensor) and is_plain(index) else 0


_MOST_OPERATORS = 500_000
_NORMS = frozenset({"aten::_foreach_norm", "aten::linalg_vector_norm", "aten::norm"})
_FROM_PYTHON = frozenset({"aten::lift_fresh"})
_ZEROING = frozenset({"aten::zero_", "aten::_foreach_zero_"})


class Watch:
    """What is noted of each operator; `step` is the number of the step that runs."""

    def __init__(self, code: UserCode) -> None:
        """Looks for the tensors that no step changes among the living modules."""
        self.paths = CallPaths(code)
        self.flow = Flow()
        self.gradients = Gradients(self.flow)
        self.nodes = GraphNodes()
        self.looked_up = LookedUpRows(self.flow)
        self.lookups: list[tuple[int, Lookup]] = []
        """Of sequences with padding, and their operations."""
        self.one_hots: dict[int, int] = {}
        """Of operations that set places of a tensor to one: how many."""
        self.slices = SliceUses(self.flow)
        self.row_reads = RowReads(self.flow)
        self.cheaper = CheaperOperators(self.flow)
        self.normalisations = Normalisations(self.flow)
        self.diagonals = DiagonalMatrices(self.flow)
        self.joined = JoinedParts(self.flow)
        self.class_masks = ClassMasks(self.flow)
        self.repeats = Repeats(self.flow)
        modules, optimizers = live_objects([nn.Module, Optimizer])
        fixed = fixed_storages(self.flow, modules, optimizers)
        self.constants = Constants(self.flow, fixed)
        parameters = parameter_storages(self.flow, modules, optimizers)
        self.samples = SampleValues(self.flow, fixed, parameters)
        self.copies = Copies(self.flow, parameters)
        self.reruns = Reruns(self.flow, parameters)
        self.repeated_rows = RepeatedRows(self.flow, parameters)
        self.unseen_uses = UnseenUses(self._use_unseen)
        self.step = 0
        self.passes: list[int] = []
        """By backward pass: the path of the line that called it."""
        self.nodes_of_passes: list[range] = []
        """The numbers of the nodes that each of them made, to be differentiated once more.

        None where a thread of autograd's own computes, which numbers its nodes by itself.
        """
        self._next_node = torch_compat.next_node_number()
        """The first of those that a backward pass would make now."""
        self._is_in_pass = False
        self._last_path = self._thread = 0
        self._gradient: Gradient | None = None
        """The one that is being given to its parameter."""

    def note(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """An operator has returned."""
        if len(self.flow.operations) > _MOST_OPERATORS:
            raise RecorderError(f"two steps have more than {_MOST_OPERATORS:,} operators")
        returned = self.flow.returned(function, args, kwargs, result)
        node = torch_compat.running_node()
        call = self.paths.call_from(sys._getframe().f_back)
        if node is None:
            self._is_in_pass, self._gradient, self._thread = False, None, get_ident()
            self._note_forward(returned, call)
            self._next_node = torch_compat.next_node_number()
            return
        if not self._is_in_pass:
            self._is_in_pass = True
            self.passes.append(call.path or self._waiting_path())
            self.nodes_of_passes.append(range(0))
        if get_ident() == self._thread:
            self.nodes_of_passes[-1] = range(self._next_node, torch_compat.next_node_number())
        self.nodes.reach(node)
        if torch_compat.gathers_gradient(node):
            self._note_gradient(node.variable, returned, call)
        else:
            self._gradient = None
            self._note_backward(node, returned, call)

    def step_optimizer(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        self.gradients.step(optimizer)
        self.slices.optimizer_steps += 1
        self.samples.step_optimizer()

    def _use_unseen(self, tensor: torch.Tensor, is_storage: bool) -> None:
        self.flow.use_unseen(tensor)
        self.row_reads.use_unseen(tensor, is_storage=is_storage)

    def _waiting_path(self) -> int:
        """The path of the thread that waits while a thread of autograd's own computes for it."""
        return self.paths.call_from(sys._current_frames().get(self._thread)).path

    def _note_forward(self, returned: Returned, call: OperatorCall) -> None:
        node = self.nodes.made(call.path)
        graph_inputs = self._graph_inputs(returned) if node >= 0 else set()
        added = self._add(returned, call)
        makes = not self.step and not call.is_loading
        self.row_reads.note(added, returned, node=node, makes=not self.step)
        self.cheaper.note(added, returned, makes=makes)
        self.normalisations.note(added, returned, makes=makes)
        self.diagonals.note(added, returned, makes=makes, is_direct=call.is_direct)
        self.repeated_rows.note(added, returned, makes=makes)
        self.joined.note(added, returned, makes=makes)
        self.class_masks.note(added, returned, makes=makes)
        for number in added:
            self.flow.operations[number].node = node
            self.flow.operations[number].graph_inputs = graph_inputs
            if node >= 0 and not self.step and isinstance(returned.result, torch.Tensor):
                self.flow.operations[number].result = weakref.ref(returned.result)
        name = returned.name
        if name in _FROM_PYTHON and not call.is_loading:
            if returned.result.dim():
                self.flow.use_unread_numbers()
            self.constants.build(returned.result, call.path, self.step)
            self.samples.build(returned.result)
        if not call.is_loading:
            self._note_slices(name, returned, call, added)
            self._note_values(returned, added)
        if name in _ZEROING:
            for tensor in tensors_of(returned.args):
                self.gradients.clear(tensor)
        elif call.is_clipping and name in _NORMS:
            for number in added:
                self.flow.drop(number)
            for tensor in tensors_of(returned.args):
                self.gradients.clip(tensor)

    def _note_values(self, returned: Returned, added: range) -> None:
        if added and self.step == 0:
            if (lookup := lookup_of(returned)) is not None:
                self.lookups.append((added[0], lookup))
            if returned.name in _ONE_HOT and (count := _ones_set(returned)):
                self.one_hots[added[0]] = count
        if len(added) == 1:
            self.constants.note(added[0], returned)
            self.reruns.note(added[0], returned)
            self.samples.note(added[0], returned)
            if self.step == 0:
                self.repeats.note(added[0], returned, is_reached=self.nodes.is_reached)

    def _graph_inputs(self, returned: Returned) -> set[int]:
        """The operations whose graphs a forward operator goes on with; before it is added."""
        given = tensors_of(returned.given)
        return {number for tensor in given if tensor.grad_fn is not None for number in self.flow.writers_of(tensor)}

    def _note_slices(self, name: str, returned: Returned, call: OperatorCall, added: range) -> None:
        if not added:
            self.slices.take(name, returned.args, returned.kwargs, returned.result, call)
        for number in added:
            self.slices.use(number, name, returned.args, returned.result, call)

    def _note_backward(self, node: Any, returned: Returned, call: OperatorCall) -> None:
        self._last_path = self.nodes.path_of(node) or self._last_path
        has_own_code = call.path not in (0, self.passes[-1])
        if has_own_code or isinstance(node, BackwardCFunction):
            self.row_reads.read_wholly(returned.given)
        added = self._add(returned, call)
        self.joined.note(added, returned, makes=False)
        for number in added:
            operation = self.flow.operations[number]
            operation.pass_number = len(self.passes) - 1
            operation.forward_path = call.path if has_own_code else self._last_path
            operation.has_user_code = has_own_code
            operation.forward_node = int(node._sequence_nr())
            self.looked_up.note(number, returned)

    def _note_gradient(self, parameter: Any, returned: Returned, call: OperatorCall) -> None:
        name = returned.name
        one = self._gradient
        if one is None or one.parameter() is not parameter:
            one = self._gradient = self.gradients.begin(parameter, adds=name.startswith("aten::add"))
        given = [*tensors_of((*returned.args, returned.result))]
        numbers = list(self._add(returned, call)) or [self.flow.pass_on(name, given[0], call, self.step)]
        for number in numbers:
            operation = self.flow.operations[number]
            operation.pass_number, operation.forward_path = len(self.passes) - 1, self._last_path
            operation.has_user_code = False
        self.gradients.accumulate(one, numbers, given)

    def _add(self, returned: Returned, call: OperatorCall) -> range:
        added = self.flow.add(returned, call, self.step)
        if len(added) == 1:
            _, function, args, kwargs, result, _ = returned
            self.flow.operations[added[0]].flops = torch_compat.flops_of(function, args, kwargs, result)
        is_forward = not self._is_in_pass and not call.is_loading
        self.copies.note(added, returned, may_begin=is_forward and call.is_direct and self.step == 0)
        if not (is_forward and len(added) == 1):
            for number in added:
                self.reruns.spoil(number, returned)
                self.samples.spoil(returned, is_loading=call.is_loading)
                if not self.step:
                    self.repeats.spoil(number, returned)
        return added
