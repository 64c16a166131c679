"""The places in code that CPU events name: by line scopes, torch's frames, or `Call stack` texts."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, named, of_kind
from deepscope.analysis.ownership.training import worker_lines
from deepscope.records import LineSource
from deepscope.trace.arrays import nearest, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import Frame, is_compiled_region, parse_call_stack, parse_frame


class Owner(IntEnum):
    """Whose a frame is. Of the frames in a call stack, those with the greatest owner are named."""

    RUNTIME = 0
    """Python itself, torch, or the profiler: never an answer to "whose line was it"."""
    LIBRARY = 1
    """An installed package; named where there is no user frame."""
    USER = 2


_RUNTIME, _LIBRARY, _USER = Owner

frame_of = lru_cache(maxsize=65536)(parse_frame)
"""`parse_frame`, remembered: several analyses ask for the same names."""

# Code that torch.compile writes and runs (`/tmp/torchinductor_me/ov/cov463….py`): its work is its caller's.
_GENERATED = re.compile(r"torchinductor_|(?:^|/)c[a-z2-7]{51}\.py$|\.triton/cache/")

_RUNTIME_PACKAGES = frozenset(
    {"torch", "functorch", "triton", "_pytest", "pluggy", "pytest", "IPython", "ipykernel", "debugpy", "pydevd"}
)

# torch strips the `sys.path` prefix from file names: `transformers/trainer.py` may stand without `site-packages`.
# fmt: off
_LIBRARY_PACKAGES = frozenset({
    "accelerate", "aiohttp", "aiter", "albumentations", "anyio", "apex", "asyncio_mqtt", "attr", "attrs",
    "auto_gptq", "av", "bitsandbytes", "causal_conv1d", "click", "cloudpickle", "colossalai", "comet_ml",
    "composer", "compressed_tensors", "cv2", "dask", "datasets", "decord", "deepscope", "deepspeed", "detectron2",
    "dgl", "diffusers", "distributed", "einops", "espnet", "evaluate", "fairscale", "fairseq", "fastapi",
    "fbgemm_gpu", "fla", "flash_attn", "flashinfer", "flax", "fsspec", "gguf", "gradio", "gym", "gymnasium",
    "habana_frameworks", "hf_transfer", "horovod", "httpx", "huggingface_hub", "hydra", "ignite", "imageio", "jax",
    "joblib", "k_diffusion", "keras", "kornia", "lhotse", "librosa", "liger_kernel", "lightning",
    "lightning_fabric", "lightning_utilities", "llvmlite", "lm_eval", "mamba_ssm", "matplotlib", "megatron",
    "mlflow", "mmcv", "mmengine", "monai", "moviepy", "msgspec", "multiprocess", "mypy_extensions", "nemo",
    "nemo_run", "neptune", "nltk", "numba", "numpy", "ogb", "omegaconf", "onnx", "onnxruntime", "openai", "optimum",
    "optree", "outlines", "packaging", "pandas", "peft", "PIL", "pillow", "polars", "protobuf", "pyarrow",
    "pydantic", "pytorch3d", "pytorch_lightning", "ray", "regex", "requests", "rich", "sacrebleu", "safetensors",
    "scipy", "segmentation_models_pytorch", "sentence_transformers", "sentencepiece", "sgl_kernel", "sglang",
    "simple_parsing", "six", "skimage", "sklearn", "soundfile", "speechbrain", "stable_baselines3", "starlette",
    "sympy", "tensorboard", "tensorboardX", "tensordict", "tensorflow", "tiktoken", "tilelang", "timm",
    "tokenize_rt", "tokenizers", "torch_geometric", "torch_npu", "torch_sparse", "torch_tb_profiler", "torch_xla",
    "torchao", "torchaudio", "torchdata", "torchmetrics", "torchrec", "torchrl", "torchsde", "torchtext",
    "torchtitan", "torchtune", "torchvision", "tqdm", "transformer_engine", "transformers", "trl",
    "typer", "typing_extensions", "ultralytics", "unsloth", "urllib3", "uvicorn", "uvloop", "vllm", "wandb",
    "webdataset", "wids", "xformers", "xfuser", "xgboost", "yaml", "yunchang", "zmq",
})
# fmt: on

# Names of the standard library that people give to their own scripts, too; a bare `profile.py` is taken for a script.
_AMBIGUOUS = frozenset({"cmd", "code", "profile", "statistics", "test", "this", "trace"})
_STDLIB = frozenset(getattr(sys, "stdlib_module_names", ())) - _AMBIGUOUS

_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(.*)$")
_STDLIB_FILE = re.compile(
    r"(?:(?:^|/)lib/(?:python|pypy)\d(?:\.\d+)?t?/|(?:^|/)python\d+\.zip/|/Python\d+/Lib/)(?!(?:site|dist)-packages/)",
    re.IGNORECASE,
)
_TORCH_SOURCE = re.compile(r"/(?:pytorch|torch)/torch/")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")


@lru_cache(maxsize=65536)
def owner_of_file(path: str) -> Owner:
    """Whose the file is; `path` is absolute, or relative where torch stripped the prefix found in `sys.path`."""
    path = path.replace("\\", "/")
    if not path or path.startswith("<"):
        # `<string>`, `<frozen importlib._bootstrap>`; notebook cells are the user's (`<ipython-input-3-…>`).
        return _USER if path.startswith("<ipython-input") else _RUNTIME
    if _GENERATED.search(path) or _STDLIB_FILE.search(path) or _TORCH_SOURCE.search(path):
        return _RUNTIME
    installed = _INSTALLED.search(path)
    if installed is None and _ABSOLUTE.match(path):
        return _USER
    package = re.split(r"[/.]", installed[1] if installed else path, maxsplit=1)[0]
    if package in _RUNTIME_PACKAGES or (installed is None and package in _STDLIB):
        return _RUNTIME
    return _LIBRARY if installed or package in _LIBRARY_PACKAGES else _USER


def python_module_of_file(path: str) -> str:
    """The dotted module of an installed file (`transformers.models.gpt2.modeling_gpt2`), as far as its path says."""
    path = path.replace("\\", "/")
    installed = _INSTALLED.search(path)
    if installed:
        path = installed.group(1)
    else:
        stdlib = re.search(r"/lib/python\d\.\d+t?/(.*)$", path)
        path = stdlib.group(1) if stdlib else path.lstrip("/")
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass(frozen=True, slots=True)
class Location:
    """A line of code. `first_line` is the first of its function, 0 unknown; `exact`: `line` is the one that ran."""

    file: str
    line: int
    function: str
    first_line: int = 0
    exact: bool = False
    of_loop: bool = False
    """Not exact: the line stands for the loop that it begins."""
    fused: bool = False
    """Not exact: only kernels that torch.compile fused from this and other lines have work here."""


def function_numbers(locations: list[Location]) -> Int64:
    """A number for each location, equal for those of one function; shape (locations,)."""
    numbers: dict[tuple[str, str, int], int] = {}
    keys = ((one.file, one.function, one.first_line) for one in locations)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


@dataclass(frozen=True, slots=True)
class Scopes:
    """The events that stand for places in code."""

    source: LineSource
    locations: list[Location]
    location: Int64
    """The place that each event stands for, an index into `locations`; -1 for none; shape (n,)."""
    stacks: dict[int, list[int]] = field(default_factory=dict)
    """With source `call_stack`: index into `Trace.strings` → its locations, outermost first."""

    @property
    def marks(self) -> Mask:
        """Which events stand for a place; shape (n,)."""
        return self.location >= 0


class _Locations:
    """Locations by (file, line): two functions on one line are one place."""

    def __init__(self) -> None:
        self.all: list[Location] = []
        self._index: dict[tuple[str, int], int] = {}

    def add(self, location: Location) -> int:
        key = (location.file, location.line)
        index = self._index.setdefault(key, len(self.all))
        if index == len(self.all):
            self.all.append(location)
        elif 0 < location.first_line < self.all[index].first_line:
            # A lambda or comprehension on the line: the line belongs to the function around it.
            self.all[index] = replace(location, exact=self.all[index].exact, of_loop=self.all[index].of_loop)
        if self.all[index].exact and not location.exact:
            self.all[index] = replace(self.all[index], exact=False, of_loop=location.of_loop)
        return index


def find_scopes(trace: Trace, parent: Int64) -> Scopes:
    """The places that the trace names, from the best source that it has.

    Args:
        trace: any trace.
        parent: the event that encloses each one on its thread, -1 for none; shape (n,).
    """
    if trace.has_line_scopes or worker_lines(trace):
        return _from_line_scopes(trace, parent)
    frames = _from_frames(trace, parent)
    if frames.locations:
        return frames
    stacks = _from_call_stacks(trace)
    if stacks.locations:
        return stacks
    return Scopes("none", [], np.full(len(trace.events), -1, np.int64))


def compiled_regions(trace: Trace) -> Mask:
    """Which events are runs of compiled code (torch.compile); shape (n,)."""
    return named(
        trace,
        of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION),
        lambda name: is_compiled_region(name) or name.startswith(("## Call CompiledFxGraph", "CompiledFunction")),
    )


def _from_line_scopes(trace: Trace, parent: Int64) -> Scopes:
    known = _Locations()
    table = np.full(len(trace.scopes) + 1, -1, np.int64)
    is_line = trace.user_lines
    for index in distinct(trace.events.scope[is_line], len(trace.scopes)):
        scope = trace.scopes[index]
        exact, of_loop = not scope.lowered, scope.lowered == "loop"
        table[index] = known.add(Location(scope.file, scope.line, scope.name, scope.first_line, exact, of_loop))
    for worked in worker_lines(trace):
        known.add(Location(worked.file, worked.line, worked.function, exact=True))
    location = np.where(is_line, table[trace.events.scope], -1)
    location[_definition_lines_of_compiled(trace, parent, is_line)] = -1
    return Scopes("scopes", known.all, location)


def _definition_lines_of_compiled(trace: Trace, parent: Int64, is_line: Mask) -> Int64:
    """Scopes (events) that only say that a compiled frame ran: Python 3.11 gives them the line of its `def`.

    The work below them belongs to the line that called the compiled function.
    """
    regions = compiled_regions(trace)
    if not regions.any():
        return np.zeros(0, np.int64)
    starts = np.array([s.line == s.first_line for s in trace.scopes] + [False])
    at_definition = is_line & starts[trace.events.scope]
    enclosing = pick(nearest(parent, is_line | regions), parent)
    holds_region = np.zeros(len(parent), np.bool_)
    holders = enclosing[regions]
    holds_region[holders[holders >= 0]] = True
    inside_region = (enclosing >= 0) & regions[enclosing]
    return np.flatnonzero(at_definition & (holds_region | inside_region))


def _from_frames(trace: Trace, parent: Int64) -> Scopes:
    is_frame = of_kind(trace, Kind.PYTHON_FUNCTION)
    known = _Locations()
    table = np.full(len(trace.strings) + 1, -1, np.int64)
    owner = np.full(len(trace.strings) + 1, Owner.RUNTIME, np.int64)
    for index in distinct(trace.events.name[is_frame], len(trace.strings)):
        frame = frame_of(trace.strings[index])
        if frame is None:
            continue
        owner[index] = whose = owner_of_file(frame.path)
        if whose:
            table[index] = known.add(Location(frame.path, frame.line, frame.function, frame.line))
    location = np.where(is_frame, table[trace.events.name], -1)
    owners = np.where(is_frame, owner[trace.events.name], Owner.RUNTIME)
    # A library's frame speaks only where no user frame lies above it.
    is_library = owners == Owner.LIBRARY
    if is_library.any():
        user = nearest(parent, owners == Owner.USER)
        location[is_library & (user >= 0)] = -1
    return Scopes("frames", known.all, location)


def _from_call_stacks(trace: Trace) -> Scopes:
    known = _Locations()
    is_own = trace.header.call_stacks.written > 0  # without lines of its own DeepScope leaves torch's as they are
    lowered = {(scope.file, scope.line): scope.lowered for scope in trace.scopes if scope.lowered}
    table = np.full(len(trace.strings) + 1, -1, np.int64)
    stacks: dict[int, list[int]] = {}
    for index in distinct(trace.events.call_stack, len(trace.strings)):
        frames = parse_call_stack(trace.strings[index])
        # Whose lines are recorded was the user's choice (`include=`).
        owners = [Owner.USER if is_own else owner_of_file(frame.path) for frame in frames]
        best = max(owners, default=Owner.RUNTIME)
        if best == Owner.RUNTIME:
            continue
        stack = [
            known.add(_place_of(frame, is_own, lowered.get((frame.path, frame.line), "")))
            for frame, owner in zip(frames, owners, strict=True)
            if owner == best
        ]
        stacks[index] = stack[::-1]
        table[index] = stack[0]
    location = np.where(of_kind(trace, Kind.OPERATOR), table[trace.events.call_stack], -1)
    return Scopes("call_stack", known.all, location, stacks)


def _place_of(frame: Frame, is_own: bool, lowered: str) -> Location:
    """The line of a stack's frame. In a stack of DeepScope (`is_own`) the line ran, unless it was lowered."""
    first_line = 0 if is_own else frame.line
    return Location(frame.path, frame.line, frame.function, first_line, is_own and not lowered, lowered == "loop")
