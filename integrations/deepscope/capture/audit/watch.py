"""Looks at the operators of some steps, and has each observer note what is asked of them afterwards."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from typing import Any

import torch
from torch import nn
from torch.autograd.function import BackwardCFunction
from torch.optim import Optimizer

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import CallPaths
from deepscope.capture.audit.cheaper_operators import CheaperOperators
from deepscope.capture.audit.constants import Constants, fixed_tensors, parameters_of
from deepscope.capture.audit.copies import Copies
from deepscope.capture.audit.diagonal_matrices import DiagonalMatrices
from deepscope.capture.audit.embeddings import Lookups
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.gradients import Gradient, Gradients
from deepscope.capture.audit.hooks import UnseenUses
from deepscope.capture.audit.large_intermediates import ClassMasks
from deepscope.capture.audit.operator_calls import OperatorCall, aten, tensors_of
from deepscope.capture.audit.repeated_rows import RepeatedRows
from deepscope.capture.audit.repeated_work import Repeats, Reruns
from deepscope.capture.audit.row_reads import RowReads
from deepscope.capture.audit.sample_work import SampleValues
from deepscope.capture.audit.sliced_calls import SliceUses
from deepscope.capture.audit.step_work import AutogradGraph
from deepscope.capture.audit.unused_results import JoinedParts
from deepscope.capture.audit.written_out import Normalisations
from deepscope.capture.lines import UserCode
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.errors import RecorderError

_MOST_OPERATORS = 500_000
_NORMS = aten("_foreach_norm linalg_vector_norm norm")
_FROM_PYTHON = aten("lift_fresh")
_ZEROING = aten("zero_ _foreach_zero_")


class Watch:
    """What is noted of each operator; `step` is the number of the step that runs."""

    def __init__(self, code: UserCode) -> None:
        """Looks for the tensors that no step changes among the living modules."""
        flow = self.flow = Flow()
        modules, optimizers = live_objects([nn.Module, Optimizer])
        fixed = flow.follow(fixed_tensors(modules, optimizers))
        parameters = flow.follow(parameters_of(modules, optimizers))
        self.paths = CallPaths(code)
        self.graph = AutogradGraph()
        self.gradients = Gradients()
        self.lookups = Lookups(flow)
        self.slices = SliceUses(flow)
        self.row_reads = RowReads(flow)
        self.cheaper = CheaperOperators(flow)
        self.normalisations = Normalisations(flow)
        self.diagonals = DiagonalMatrices(flow)
        self.repeated_rows = RepeatedRows(flow, parameters)
        self.joined = JoinedParts(flow)
        self.class_masks = ClassMasks(flow)
        self.constants = Constants(flow, fixed)
        self.samples = SampleValues(flow, fixed, parameters)
        self.copies = Copies(flow, parameters)
        self.repeats = Repeats(flow, self.graph)
        self.reruns = Reruns(flow, self.graph, parameters)
        self._observers: list[Observer[Any]] = [one for one in vars(self).values() if isinstance(one, Observer)]
        self.unseen_uses = UnseenUses(self._use_unseen)
        self.step = 0
        self._next_node = torch_compat.next_node_number()
        """The first of the nodes that a backward pass would make now."""
        self._is_in_pass = False
        self._last_path = self._thread = 0
        self._gradient: Gradient | None = None
        """The one that is being given to its parameter."""

    def note(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """An operator has returned."""
        if len(self.flow.operations) > _MOST_OPERATORS:
            raise RecorderError(f"two steps have more than {_MOST_OPERATORS:,} operators")
        node, graph = torch_compat.running_node(), self.graph
        site = self.paths.call_from(sys._getframe().f_back)
        graph_node = graph.made(site.path) if node is None else -1
        graph_inputs = self._graph_inputs((*args, *kwargs.values())) if graph_node >= 0 else set()
        call = self.flow.add(function, args, kwargs, result, site=site, step=self.step)
        if node is None:
            self._is_in_pass, self._gradient, self._thread = False, None, get_ident()
            self._note_forward(call, graph_node, graph_inputs)
            self._next_node = torch_compat.next_node_number()
            return
        if not self._is_in_pass:
            self._is_in_pass = True
            graph.passes.append(site.path or self._waiting_path())
            graph.nodes_of_passes.append(range(0))
        if get_ident() == self._thread:
            graph.nodes_of_passes[-1] = range(self._next_node, torch_compat.next_node_number())
        graph.reach(node)
        if torch_compat.gathers_gradient(node):
            self._note_gradient(node.variable, call)
        else:
            self._gradient = None
            self._note_backward(node, call)
        for one in self._observers:
            one.note_backward(call)

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

    def _graph_inputs(self, given: tuple[Any, ...]) -> set[int]:
        """The operations whose graphs a forward operator goes on with; before it is added."""
        of_graphs = (tensor for tensor in tensors_of(given) if tensor.grad_fn is not None)
        return {number for tensor in of_graphs for number in self.flow.writers_of(tensor)}

    def _note_forward(self, call: OperatorCall, node: int, graph_inputs: set[int]) -> None:
        for number in call.numbers:
            operation = self.flow.operations[number]
            operation.node, operation.graph_inputs = node, graph_inputs
            if node >= 0 and not self.step and isinstance(call.result, torch.Tensor):
                operation.result = weakref.ref(call.result)
        if call.name in _FROM_PYTHON and not call.site.is_loading:
            if call.result.dim():
                self.flow.use_unread_numbers()
            self.constants.build(call)
            self.samples.build(call.result)
        for one in self._observers:
            one.note(call)
        if call.name in _ZEROING:
            for tensor in tensors_of(call.args):
                self.gradients.clear(tensor)
        elif call.site.is_clipping and call.name in _NORMS:
            for number in call.numbers:
                self.flow.drop(number)
            for tensor in tensors_of(call.args):
                self.gradients.clip(tensor)

    def _note_backward(self, node: Any, call: OperatorCall) -> None:
        self._last_path = self.graph.path_of(node) or self._last_path
        has_own_code = call.site.path not in (0, self.graph.passes[-1])
        if has_own_code or isinstance(node, BackwardCFunction):
            self.row_reads.read_wholly(call.given)
        for number in call.numbers:
            self._set_pass(number, call.site.path if has_own_code else self._last_path, has_user_code=has_own_code)
            self.flow.operations[number].forward_node = int(node._sequence_nr())

    def _note_gradient(self, parameter: Any, call: OperatorCall) -> None:
        one = self._gradient
        if one is None or one.parameter() is not parameter:
            one = self._gradient = self.gradients.begin(parameter, adds=call.name.startswith("aten::add"))
        given = [*tensors_of((*call.args, call.result))]
        numbers = list(call.numbers) or [self.flow.pass_on(call.name, given[0], call.site, self.step)]
        for number in numbers:
            self._set_pass(number, self._last_path, has_user_code=False)
        self.gradients.accumulate(one, numbers, given)

    def _set_pass(self, number: int, forward_path: int, *, has_user_code: bool) -> None:
        operation = self.flow.operations[number]
        operation.pass_number = len(self.graph.passes) - 1
        operation.forward_path, operation.has_user_code = forward_path, has_user_code
