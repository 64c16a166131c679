"""Whose code a Python file is, judged by its path alone, in traces recorded by anyone on any machine."""

from __future__ import annotations

import re
import sys
from enum import IntEnum
from functools import lru_cache

from deepscope.trace.names import parse_frame


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
    package = _first_component(installed[1] if installed else path)
    if package in _RUNTIME_PACKAGES or (installed is None and package in _STDLIB):
        return _RUNTIME
    return _LIBRARY if installed or package in _LIBRARY_PACKAGES else _USER


def _first_component(path: str) -> str:
    head = path.split("/", 1)[0]
    return head.split(".", 1)[0]


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
