"""Kernels and operators that move data between devices, by name; and names of C++ functions taken apart."""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_letters, digits
from typing import NamedTuple

_ENDS = frozenset(f"{ascii_letters}{digits}_>)")
"""Characters that a function's name, its template's arguments, or `operator()`, may end with."""
_TOKENS = re.compile(r"\boperator\s*(?:\(\)|->\*?|<<=?|>>=?|<=>|[<>]=?)|->|[<>() ]")
_TYPE = re.compile(
    r"(?:(?:static|const|unsigned|signed|void|bool|char|short|int|long|float|double|auto)\b[ *&]*)+|.*::type"
)
_BEHIND = (" ", "::", "[", "(", ".")
"""What may follow a function's arguments: qualifiers, a lambda within it, a clone's name."""


def function_of(text: str) -> str:
    """A function's qualified name with its template's arguments; what is no C++ function stays as it is.

    Parentheses decide before `<` and `>`: in `std::enable_if<((8) > (0)), void>::type f<8>(int)` one `>` compares.
    """
    begin, end, close = _parts(text)
    if text[close:] and not text[close:].startswith(_BEHIND):
        return text
    before = text[:begin].strip()
    if not (_TYPE.fullmatch(before) or (end < len(text) and ("::" in before or "<" in before))):
        begin = 0
    return text[begin:end].strip()


def _parts(text: str) -> tuple[int, int, int]:
    """Where the name begins and ends, and where its arguments end."""
    open_: list[str] = []
    begin, end = 0, -1
    for token in _TOKENS.finditer(text):
        letter, at = token[0], token.start()
        if letter == " ":
            begin = at + 1 if not open_ and end < 0 else begin
        elif letter == "<":
            open_.append(letter)
        elif letter == ">":
            if open_ and open_[-1] == "<":
                open_.pop()
        elif letter == "(":
            if not open_ and end < 0 and text[at - 1 : at] in _ENDS and not text.endswith("decltype", 0, at):
                end = at
            open_.append(letter)
        elif letter == ")":
            while open_ and open_.pop() != "(":
                pass
            if end >= 0 and not open_:
                return begin, end, token.end()
    return begin, len(text) if end < 0 else end, len(text)


def without_templates(text: str) -> str:
    """A qualified name without the arguments of its templates."""
    kept, depth, at = [], 0, 0
    for token in _TOKENS.finditer(text):
        if token[0] in "<>":
            if depth == 0:
                kept.append(text[at : token.start()])
            depth = max(depth + (1 if token[0] == "<" else -1), 0)
            at = token.end()
    return "".join([*kept, text[at:] if depth == 0 else ""])


class CommLibrary(NamedTuple):
    """Functions of one library."""

    name: str
    pattern: str
    """Searched in the qualified name without its template's arguments; upper and lower case differ."""
    source: str
    """Where the names stand."""


_GITHUB = "https://github.com"
LIBRARIES = (
    CommLibrary("nccl", r"(?i:nccl)", f"{_GITHUB}/NVIDIA/nccl/blob/master/src/device/common.h"),
    CommLibrary("rccl", r"(?i:rccl)", f"{_GITHUB}/ROCm/rccl"),
    CommLibrary("msccl", r"(?i:msccl)", f"{_GITHUB}/microsoft/mscclpp"),
    CommLibrary("hccl", r"(?i:hccl|hcom_)", "https://gitee.com/ascend/cann-hccl"),
    CommLibrary("oneccl", r"(?i:oneccl|(?<![a-z])ccl(?:::|_))", f"{_GITHUB}/uxlfoundation/oneCCL"),
    CommLibrary("mccl", r"(?<![A-Za-z])[mx]ccl", f"{_GITHUB}/MooreThreads/torch_musa"),
    CommLibrary("gloo", r"(?i:gloo:)", f"{_GITHUB}/pytorch/gloo"),
    CommLibrary(
        "deep_ep",  # and what has its kernels from there: UCCL, Mooncake, NIXL; once with a name that is mangled
        r"(?:deep_ep|hybrid_ep|uccl|mooncake|nixl_ep)::(?!layout)|7deep_ep(?!6layout)",
        f"{_GITHUB}/deepseek-ai/DeepEP/tree/main/csrc/kernels",
    ),
    CommLibrary("mori", r"mori::.*(?:Dispatch|Combine)|\bEp(?:Dispatch|Combine)\w*Kernel", f"{_GITHUB}/ROCm/mori"),
    CommLibrary("pplx", r"pplx::.*(?i:dispatch|combine)", f"{_GITHUB}/perplexityai/pplx-kernels"),
    CommLibrary("tensorrt_llm", r"moeA2A\w*Kernel|moe_?(?:comm|alltoall)::", f"{_GITHUB}/NVIDIA/TensorRT-LLM"),
    CommLibrary("nvshmem", r"(?i:(?:nv|roc)shmem)|_on_stream_kernel", f"{_GITHUB}/NVIDIA/nvshmem"),
    CommLibrary(
        "symmetric_memory",
        r"symmetric_memory::|symm_mem::|multimem_|(?:put|wait)_signal_kernel",
        f"{_GITHUB}/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu",
    ),
    CommLibrary(
        "custom_all_reduce",  # vLLM, SGLang, aiter and FlashInfer have the same kernel
        r"cross_device_reduce|reduce_scatter_cross_device|_C_custom_ar::",
        f"{_GITHUB}/vllm-project/vllm/blob/main/csrc/custom_all_reduce.cuh",
    ),
    CommLibrary("quickreduce", r"(?i:quick_?reduce)", f"{_GITHUB}/vllm-project/vllm/tree/main/csrc/quickreduce"),
    CommLibrary("userbuffers", r"userbuffers_", f"{_GITHUB}/NVIDIA/TransformerEngine"),
    CommLibrary("c10d", r"c10d::", f"{_GITHUB}/pytorch/pytorch/tree/main/torch/csrc/distributed/c10d"),
    CommLibrary(
        "",  # whoever wrote it: `one_shot_all_reduce_kernel`, `oneshotAllreduceFusionKernel`, `moe_alltoall`
        r"(?<![A-Za-z])(?<!block_)(?<!warp_)(?:(?i:all_?(?:reduce|gather|(?:to|2)_?all)|reduce_?scatter)|a2a_)"
        r"|(?<![A-Z])(?<![Bb]lock)(?<![Ww]arp)(?:All_?(?i:reduce|gather|(?:to|2)_?all)|Reduce_?[Ss]catter)",
        f"{_GITHUB}/flashinfer-ai/flashinfer/tree/main/include/flashinfer/comm",
    ),
)
"""The first that fits counts. Names alone as common as `combine` are nobody's: attention that splits its keys has a
kernel of this name."""
_PATTERNS = tuple((one.name, re.compile(one.pattern)) for one in LIBRARIES)
_HINTS = re.compile(
    r"ccl|hcom_|gloo:|_ep::|mori::|EpDispatch|EpCombine|pplx|moe|shmem|symm|multimem|_signal_|cross_device|custom_ar|"
    r"quick_?reduce|userbuffers|c10d|all_?reduce|all_?gather|all_?(?:to|2)_?all|reduce_?scatter|mooncake|deep_ep|a2a_|"
    r"_on_stream_kernel",
    re.IGNORECASE,
)
"""Most names have none of these, and are not taken apart."""
_INNOCENT = ("triton_poi_", "triton_per_", "triton_red_", "triton_for_", "fsdp::")
"""What torch.compile wrote, and FSDP's copies into and out of its buffers."""
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|`anonymous namespace'::|<unnamed>::|\{anonymous\}::")


@lru_cache(maxsize=65536)
def library_of(name: str) -> str | None:
    """The library whose function moves data between devices; "" for one of no known library, None for all else."""
    if not _HINTS.search(name) or name.startswith(_INNOCENT):
        return None
    own = without_templates(function_of(_ANONYMOUS.sub("", name)))
    return next((library for library, pattern in _PATTERNS if pattern.search(own)), None)


def is_collective(name: str) -> bool:
    """Whether a kernel (or operator) moves data between ranks."""
    return library_of(name) is not None
