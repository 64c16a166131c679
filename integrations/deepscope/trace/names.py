"""What the recorders' words mean: categories, runtime calls, collectives, frames."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from deepscope.trace.communication import is_collective
from deepscope.trace.format.span_names import LINE_CATEGORY, MODULE_CATEGORY, STEP_PREFIX
from deepscope.trace.kinds import Kind

# libkineto/src/ActivityType.cpp, its first release's names (Operator, Runtime, …), torch_npu's and DeepScope's own.
_KINDS: dict[str, Kind] = {
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON_FUNCTION,
    "python": Kind.PYTHON_FUNCTION,
    LINE_CATEGORY: Kind.LINE_SCOPE,
    MODULE_CATEGORY: Kind.MODULE_SCOPE,
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "runtime": Kind.RUNTIME,
    "enqueue": Kind.RUNTIME,
    "dequeue": Kind.RUNTIME,
    "kernel": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "memcpy": Kind.MEMCPY,
    "gpu_memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "gpu_memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_SPAN,
    "cuda_sync": Kind.DEVICE_SPAN,
    "cuda_event": Kind.DEVICE_SPAN,
    "cuda_profiler_range": Kind.DEVICE_SPAN,
    "collective_comm": Kind.DEVICE_SPAN,
    "overhead": Kind.OTHER,
    "trace": Kind.OTHER,
}

# `cuda_runtime`, `cuda_driver`, `hip_runtime`, `xpu_driver`, `privateuse1_runtime`, `mtia_runtime`, `glow_runtime`, …
_RUNTIME_SUFFIXES = ("_runtime", "_driver")

# The oldest recorder put annotations among the operators; torch's own are known by these names.
_ANNOTATION_NAMES = (STEP_PREFIX, "enumerate(DataLoader)#", "Optimizer.step#", "Optimizer.zero_grad#")

# msprof writes no categories; the process says what its rows are.
_ASCEND_PROCESSES: dict[str, Kind] = {
    "Ascend Hardware": Kind.KERNEL,
    "CANN": Kind.RUNTIME,
    "HCCL": Kind.DEVICE_SPAN,
    "Communication": Kind.DEVICE_SPAN,
    "Overlap Analysis": Kind.OTHER,
}

_ASCEND_WAITS = re.compile(r"EVENT_WAIT|EVENT_RECORD|EVENT_RESET|NOTIFY_WAIT|NOTIFY_RECORD", re.IGNORECASE)
_MTIA_WAITS = frozenset({"event_wait", "event_record"})


def kind_of(category: str, name: str, process_name: str = "") -> Kind:
    """Kind of a complete event by its category as written, its name and the name that metadata gives its process."""
    kind = _KINDS.get(category) or _KINDS.get(category.lower())
    if kind is None:
        if category.lower().endswith(_RUNTIME_SUFFIXES):
            return Kind.RUNTIME
        return _ascend_kind(name, process_name) if not category else Kind.OTHER
    if kind is Kind.OPERATOR and name.startswith(_ANNOTATION_NAMES):
        return Kind.ANNOTATION
    if category == "mtia_ccp_events":
        return _mtia_kind(name)
    return kind


def _ascend_kind(name: str, process_name: str) -> Kind:
    kind = _ASCEND_PROCESSES.get(process_name, Kind.OTHER)
    if kind is not Kind.KERNEL:
        return kind
    if _ASCEND_WAITS.search(name):
        return Kind.DEVICE_SPAN
    upper = name.upper()
    if upper.startswith("MEMCPY") or upper == "SDMA":
        return Kind.MEMCPY
    return Kind.MEMSET if upper.startswith("MEMSET") else Kind.KERNEL


def _mtia_kind(name: str) -> Kind:
    if name in _MTIA_WAITS:
        return Kind.DEVICE_SPAN
    return Kind.MEMCPY if name == "dma_request" else Kind.KERNEL


_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")


def stepped_optimizer(name: str) -> str | None:
    """The class of the optimizer whose `step` torch opened this span around; None for any other span."""
    match = _OPTIMIZER_STEP.fullmatch(name)
    return match[1] if match else None


def zeroes_gradients(name: str) -> bool:
    """Whether torch opened this span around an optimizer's `zero_grad`."""
    return name.startswith("Optimizer.zero_grad#")


_COMMUNICATION_SPAN = re.compile(r"(?:nccl|gloo|mpi|ucc|xccl|hccl):(?P<name>\w+)(?: .*)?")


def is_communication_span(name: str) -> bool:
    """Whether torch opened this span around a collective of a backend: `nccl:all_reduce`, `gloo:broadcast`."""
    return _COMMUNICATION_SPAN.fullmatch(name) is not None


def is_cpu_collective(name: str) -> bool:
    """Whether a name is of a span of communication on threads of the CPU: its backend is none of a device."""
    return is_communication_span(name) and not name.startswith(("nccl", "xccl", "hccl"))


def is_loading_span(name: str) -> bool:
    """Whether torch opened this span around taking the next batch from a data loader, or from a data pipe."""
    return name.startswith("enumerate(DataPipe)#") or (
        name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__")
    )


ANNOUNCEMENT = "record_param_comms"
"""The operator that torch opens around a collective, with what it moves and between whom."""


def announces_collective(name: str) -> bool:
    """Whether the arguments of events of this name may say what a collective moves, and between whom.

    torch writes them to `record_param_comms` and to NCCL's kernels (torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
    """
    return name == ANNOUNCEMENT or is_collective(name)


_SYNC_CALL = re.compile(
    r"""
    (?:cuda|hip|musa|cu)(?:Stream|Device|Event|Thread|Ctx)Synchronize\w*
    | (?:cuda|hip|musa|cu)Memcpy(?!\w*Async)\w*
    | ze\w*HostSynchronize | zeCommandQueueSynchronize | (?:ur|pi)(?:QueueFinish|EventWait|EventsWait)
    | (?:AscendCL@)?aclrt(?:Synchronize(?!\w*Async)\w*|Memcpy)
    | synchronize(?:Stream|Device|Event)?
    """,
    re.VERBOSE,
)

_SYNC_OPERATORS = frozenset({"aten::_local_scalar_dense"})

_LAUNCH_CALL = re.compile(r"launch|memcpy|memset|enqueue|runFunction|submit|execute", re.IGNORECASE)


def is_sync(name: str) -> bool:
    """Whether a runtime or driver call holds its CPU thread until the device is done (CUDA, HIP, XPU, Ascend, MTIA)."""
    return _SYNC_CALL.fullmatch(name) is not None


def is_sync_operator(name: str) -> bool:
    """Whether an operator waits for the device by its nature: what `.item()` calls."""
    return name in _SYNC_OPERATORS


def is_launch(name: str) -> bool:
    """Whether a runtime or driver call hands work to the device: a kernel, a graph, a copy or a fill."""
    return _LAUNCH_CALL.search(name) is not None


ACCUMULATES_GRADIENT = "torch::autograd::AccumulateGrad"
"""The autograd node that adds a gradient to its parameter's."""
_EVALUATE = "autograd::engine::evaluate_function: "
# Generated nodes (`MmBackward0`), Python functions' (`MyFunctionBackward`), and those that the engine names itself.
_NODE = re.compile(r"(?!aclnn)(?:[\w.<>]+Backwards?\d*|torch::autograd::.+|.*DifferentiableGraphBackward)$")


def is_backward_root(name: str) -> bool:
    """Whether autograd's engine opened this span: everything below it is backward work."""
    return name.startswith(_EVALUATE)


def evaluated_node(name: str) -> str:
    """The autograd node that a span of the engine evaluates; any other name as it is."""
    return name.removeprefix(_EVALUATE)


def evaluates(node: str, name: str) -> bool:
    """Whether a span of the engine evaluates a node of this name."""
    return evaluated_node(name) == node


def is_backward_node(name: str) -> bool:
    """Whether this is an autograd node (`MmBackward0`, `torch::autograd::AccumulateGrad`), not the engine's span."""
    return _NODE.match(name) is not None


def is_compiled_region(name: str) -> bool:
    """Whether dynamo opened this span around a frame that it compiled (torch.compile)."""
    return name.startswith("Torch-Compiled Region")


def is_cache_lookup(name: str) -> bool:
    """Whether dynamo opened this span while it looked for what it has compiled of a frame; a hit's region follows."""
    return name == "TorchDynamo Cache Lookup"


def is_numbered_early(name: str) -> bool:
    """Whether a node takes its sequence number before its operators run, as TorchScript's do.

    torch/csrc/jit/runtime/graph_executor.cpp makes the node, then runs the graph.
    """
    return name.endswith("DifferentiableGraphBackward")


CONVOLUTIONS = frozenset(
    f"aten::{name}"
    for name in (
        "convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "miopen_convolution",
        "mkldnn_convolution", "miopen_depthwise_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu",
        "miopen_convolution_relu", "miopen_convolution_add_relu", "convolution_backward",
        "convolution_backward_overrideable",
    )
)  # fmt: skip
"""Operators whose shapes do not say what they compute: the strides and paddings are numbers among the arguments."""


VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        "alias", "as_strided", "as_strided_", "_batch_norm_impl_index", "batch_norm", "chunk", "clone", "contiguous",
        "conv1d", "conv2d", "conv3d", "cross_entropy_loss", "detach", "detach_", "diagonal", "dropout", "einsum",
        "empty", "empty_like", "empty_strided", "expand", "expand_as", "flatten", "item", "layer_norm", "linear",
        "log_softmax", "matmul", "movedim", "narrow", "new_empty", "new_empty_strided", "nll_loss", "nll_loss_nd",
        "numpy_T", "ones", "ones_like", "permute", "real", "reshape", "_reshape_alias", "resize_", "resolve_conj",
        "resolve_neg", "result_type", "rms_norm", "scaled_dot_product_attention", "select", "set_", "slice", "softmax",
        "split", "split_with_sizes", "squeeze", "squeeze_", "t", "t_", "to", "_to_copy", "transpose", "transpose_",
        "type_as", "unbind", "unflatten", "unfold", "_unsafe_view", "unsqueeze", "unsqueeze_", "view", "view_as",
        "zeros", "zeros_like",
    )
)  # fmt: skip
"""Operators that move no data themselves: they make a view or room, or call others that move some."""


_TRANSPOSED_CONVOLUTIONS = {"aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose"}
_MASKED_ATTENTION = {
    *(
        f"aten::_scaled_dot_product_{name}{direction}"
        for name in (
            "flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu",
            "fused_attention_overrideable",
        )
        for direction in ("", "_backward")
    ),
    *(
        f"aten::_{name}_attention_{direction}"
        for name in ("flash", "efficient", "cudnn")
        for direction in ("forward", "backward")
    ),
    "flash_attn::_flash_attn_forward",
    "flash_attn::_flash_attn_backward",
}  # fmt: skip
WITH_NUMBERS = (
    CONVOLUTIONS
    | _TRANSPOSED_CONVOLUTIONS
    | _MASKED_ATTENTION
    | {"aten::_trilinear", "aten::_cudnn_rnn_backward", "aten::miopen_rnn_backward"}
    | {"aten::index_select", "record_param_comms", "c10d::send", "c10d::recv_"}
)
"""Operators of which the numbers, flags and lists among the arguments are kept."""


def is_forked_function(name: str) -> bool:
    """Whether TorchScript's interpreter opened this span around what `torch.jit.fork` runs on a thread of its pool."""
    return name == "<forked function>"


class Frame(NamedTuple):
    """A Python frame as a name tells it; `line` is 1-based."""

    path: str
    line: int
    function: str


# The function's part may hold parentheses and colons, the path of Windows a colon, so the *first* `(digits): ` divides.
_FRAME = re.compile(r"^(?P<path>.+?)\((?P<line>\d+)\): (?P<function>.*)$", re.DOTALL)


def parse_frame(name: str) -> Frame | None:
    """`path(12): function` taken apart; None for `<built-in …>`, `nn.Module: Linear_0` and all else."""
    if "): " not in name:
        return None
    match = _FRAME.match(name)
    if match is None or len(match["line"]) > 9:
        return None
    return Frame(match["path"], int(match["line"]), match["function"])


def parse_call_stack(text: str) -> list[Frame]:
    """Frames of a `Call stack` argument, innermost first as written, without what is no frame (`...`)."""
    return [frame for part in text.split(";") if (frame := parse_frame(part.strip())) is not None]


def one_spelling(text: str) -> str:
    """`[64, 1, 1]` for whatever says the same; a text that is no JSON as it is."""
    try:
        return json.dumps(json.loads(text)) if text else ""
    except (ValueError, RecursionError):
        return text
