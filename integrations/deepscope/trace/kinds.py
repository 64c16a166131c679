"""What events and operators are of: closed lists of kinds."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

_AS_SPAN = re.compile(r"^autograd::engine::evaluate_function: |^torch::autograd::|Backward\d*$|^<\w+ op>$")
_COMPILED = re.compile(r"^triton_|^## Call CompiledFxGraph|^Torch-Compiled Region|^CompiledFunction|^TorchDynamo")
_COMMUNICATION = re.compile(
    r"^c10d::|^_?c10d_functional::|^nccl:|^gloo:|^mpi:|^record_param_comms|all_?reduce|all_?gather|reduce_scatter|"
    r"all_?to_?all|^DistributedDataParallel|^symm_mem::|^_C_custom_ar::|^deep_ep|cross_device_reduce|^fbgemm::.*comm",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(r"^Optimizer\.|^aten::_fused_(?:adam|adamw|sgd|adagrad)_?|^aten::_amp_")
_ASCEND = re.compile(r"^aclnn(?:Inplace)?")
"""What CANN puts around a name (`aclnnInplaceAdd`)."""
_DATA = re.compile(r"^enumerate\(Data|pin_memory$|^aten::_?pin_memory")

_RULES: tuple[tuple[str, str], ...] = (
    ("attention", r"attention|_attn|^flash_|sdpa|_transform_bias_rescale_qkv"),
    ("convolution", r"conv(?!ert)|^_?slow_conv|^thnn_conv|^nnpack_spatial"),
    ("recurrent", r"lstm|gru|^_?cudnn_rnn|^_?thnn_fused|^miopen_rnn|^rnn_|^mkldnn_rnn|^quantized_rnn"),
    (
        "matmul",
        (
            r"^(?:_?(?:scaled_|grouped_|int_|scaled_grouped_|weight_\w*|addmm_activation)?(?:mm|addmm|bmm|baddbmm|addbmm|"
            r"linear|matmul|mv|addmv|dot|vdot|ger|addr|einsum|tensordot|chain_matmul|multi_dot|linalg_multi_dot|inner|outer|"
            r"bilinear|_trilinear|kron|linalg_vecdot|mkldnn_linear|linear_backward|matmul_backward|mm_v2)_?(?:_v2)?$)|gemm|"
            r"_addmm|_linear$|_mm$|_mm_v2$"
        ),
    ),
    ("normalisation", r"(?:batch|layer|group|instance|rms|local_response)_?norm|^renorm|^normalize"),
    ("softmax", r"softmax|logsumexp|softmin"),
    ("loss", r"loss|cross_entropy|kl_div|smooth_l1|huber"),
    ("pooling", r"(?<!memory_)pool"),
    ("embedding", r"embedding"),
    ("sort", r"^sort$|^argsort|topk|^msort|kthvalue|unique|searchsorted|bucketize|histc|^mode$"),
    ("dropout", r"dropout"),
    ("optimizer", r"^_foreach_|^_fused_"),
    (
        "random",
        (
            r"^(?:rand|randn|randint|randperm|normal|uniform|bernoulli|multinomial|exponential|cauchy|geometric|log_normal|"
            r"random|poisson|philox)(?:_like)?_?$"
        ),
    ),
    (
        "copy",
        (
            r"^(?:copy|_copy_from\w*|clone|contiguous|to|_to_copy|cat|_cat|concat|stack|_stack|repeat|repeat_interleave|"
            r"tile|flip|roll|type_as|cuda|cpu|float|half|bfloat16|double|int|long|pad|constant_pad_nd|reflection_pad\w*|"
            r"replication_pad\w*|_pad_circular|pixel_shuffle|upsample\w*|interpolate|_upsample\w*|im2col|col2im|fold|"
            r"item|_local_scalar_dense|is_nonzero)_?$|^Memcpy"
        ),
    ),
    (
        "indexing",
        (
            r"^(?:index|_index|_unsafe_index|_index_put_impl|index_put|index_select|index_add|index_copy|index_fill|gather|"
            r"scatter\w*|_scatter\w*|take|take_along_dim|masked_select|masked_scatter|nonzero\w*|where_index|argwhere|put)_?"
            r"(?:_backward)?$|^(?:gather|index\w*|select|slice|unfold|diagonal|embedding)_(?:backward|scatter)$"
        ),
    ),
    ("memory", r"^(?:empty\w*|new_empty\w*|resize\w*|_resize\w*|set|record_stream|storage\w*)_?$"),
    (
        "fill",
        (
            r"^(?:zeros?\w*|ones?\w*|full\w*|fill\w*|new_zeros|new_ones|new_full|arange|linspace|logspace|eye|scalar_tensor|"
            r"lift\w*|tensor|tril_indices|triu_indices|zero)_?$"
        ),
    ),
    (
        "view",
        (
            r"^(?:view\w*|_unsafe_view|reshape\w*|_reshape\w*|expand\w*|permute|transpose|t|numpy_T|mT|mH|squeeze|unsqueeze|"
            r"flatten|unflatten|slice|select|narrow|split\w*|_?unsafe_split\w*|chunk|_?unsafe_chunk|tensor_split|unbind|"
            r"detach|alias|as_strided|movedim|swapaxes|swapdims|diagonal|unfold|real|imag|view_as\w*|_conj|conj|resolve_\w+|"
            r"broadcast_to|broadcast_tensors|meshgrid|lift_fresh|_nested_\w+|result_type|ravel|atleast_\w+|_neg_view)_?$"
        ),
    ),
    (
        "reduction",
        (
            r"^(?:sum\w*|mean|amax|amin|aminmax|max|min|argmax|argmin|prod|all|any|std\w*|var\w*|norm|linalg_norm|"
            r"linalg_vector_norm|_?linalg_\w*norm|median|nansum|nanmean|count_nonzero|cumsum\w*|_?cumsum|cumprod\w*|cummax|"
            r"cummin|logcumsumexp|dist|cdist|_cdist\w*|equal|allclose|trace|value_selecting_reduction_backward|bincount)_?$"
        ),
    ),
    (
        "elementwise",
        (
            r"^_?(?:add|sub|rsub|mul|div|divide|multiply|subtract|true_divide|floor_divide|remainder|fmod|pow|sqrt|rsqrt|"
            r"square|exp|exp2|expm1|log|log2|log10|log1p|abs|neg|negative|positive|sign|sgn|sin|cos|tan|asin|acos|atan|"
            r"atan2|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|erfinv|sigmoid|silu|gelu|relu|relu6|prelu|rrelu|leaky_relu|"
            r"elu|selu|celu|mish|hardtanh|hardswish|hardsigmoid|hardshrink|softplus|softshrink|softsign|log_sigmoid\w*|"
            r"threshold|glu|tril|triu|clamp\w*|clip\w*|lerp|addcmul|addcdiv|maximum|minimum|fmax|fmin|where|eq|ne|lt|le|gt|"
            r"ge|greater\w*|less\w*|not_equal|logical_\w+|bitwise_\w+|__\w+__|isnan|isinf|isfinite|isin|nan_to_num|"
            r"masked_fill|floor|ceil|round|trunc|frac|reciprocal|copysign|hypot|logit|lgamma|digamma|xlogy|heaviside|"
            r"polar|complex|conj_physical|angle|fake_quantize\w*|quantize\w*|dequantize\w*|\w*quant\w*)_?"
            r"(?:_backward\w*|_jvp|_?grad_input)?$"
        ),
    ),
)
"""A kind, and the names behind the last `::` that are of it; the first rule that holds counts."""
_MATCHES = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _RULES)

OPERATOR_KINDS = (*(kind for kind, _ in _RULES), "communication", "compiled", "autograd", "data", "other")
"""All kinds that there are."""


@lru_cache(maxsize=65536)
def operator_kind(name: str) -> str:
    """The kind of an operator; `autograd` are the engine's own spans, `other` is what no rule names."""
    name = name[:400]
    for kind, pattern in (
        ("compiled", _COMPILED),
        ("communication", _COMMUNICATION),
        ("optimizer", _OPTIMIZER),
        ("data", _DATA),
        ("autograd", _AS_SPAN),
    ):
        if pattern.search(name):
            return kind
    own = _ASCEND.sub("", name.rpartition("::")[2])
    return next((kind for kind, pattern in _MATCHES if pattern.search(own)), "other")


class Kind(IntEnum):
    """What an event is, by whatever name its recorder calls it. Lower kinds enclose higher ones at equal times."""

    ANNOTATION = 0
    """`user_annotation`: `record_function` spans, `ProfilerStep#N`, the data loader's and the optimizer's own."""
    PYTHON_FUNCTION = 1
    """A frame of torch's own `with_stack` recording."""
    LINE_SCOPE = 2
    """One run of one line, the user's or a library's, recorded by DeepScope (category `python_line`)."""
    MODULE_SCOPE = 3
    """One call of an `nn.Module`, recorded by DeepScope (category `python_module`)."""
    OPERATOR = 4
    """`cpu_op` and its older and other names."""
    RUNTIME = 5
    """A call of the device's runtime or driver on the CPU: launches, copies, synchronisation."""
    KERNEL = 6
    """Device work: a kernel, collectives included."""
    MEMCPY = 7
    """Device work: a copy."""
    MEMSET = 8
    """Device work: a fill."""
    DEVICE_SPAN = 9
    """A span on a device that encloses work (`gpu_user_annotation`, `cuda_sync`, …): never counted as device time."""
    OTHER = 10
    """Anything else: profiler overhead, trace spans, unknown categories."""
