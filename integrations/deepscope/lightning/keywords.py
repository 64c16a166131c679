"""What users of Lightning's `PyTorchProfiler` pass, turned into DeepScope's own options or into a clear message."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepscope.capture.naming import check_template, is_template
from deepscope.capture.options import SCHEDULE_NAMES, OptionKeywords, RecordingOptions, checked_options
from deepscope.errors import OptionError
from deepscope.report.tables import table

_WITHOUT_EFFECT = {
    "export_to_chrome": "a trace is always written",
    "table_kwargs": "the summary is DeepScope's own table",
    "export_to_flame_graph": "the trace holds the stacks: deepscope report, or the flame graph in the editor",
    "metric": "it belongs to export_to_flame_graph",
    "use_cpu": "choose with activities=",
    "use_cuda": "choose with activities=",
}
"""Options of `PyTorchProfiler` that change nothing here, with what to do in their place."""

_TORCH_SORT_KEYS = {
    "self_device_time_total": "self",
    "device_time_total": "total",
    "device_time": "total",
    "self_cpu_time_total": "cpu",
    "cpu_time_total": "total-cpu",
    "cpu_time": "total-cpu",
    "cpu_memory_usage": "memory",
    "device_memory_usage": "memory",
    "self_cpu_memory_usage": "memory",
    "self_device_memory_usage": "memory",
    "count": "calls",
}
"""`PyTorchProfiler`'s keys and the report's own for the same number; `cuda` stands for `device` in any of them."""


class LightningKeywords(OptionKeywords, total=False):
    """What a `DeepProfiler` takes: the options of a recording, and those of Lightning's `PyTorchProfiler`."""

    on_demand: bool
    row_limit: int
    sort_by_key: str | None
    emit_nvtx: bool
    group_by_input_shapes: bool
    record_module_names: bool
    export_to_chrome: bool
    table_kwargs: Mapping[str, Any] | None
    export_to_flame_graph: bool
    metric: str
    use_cpu: bool
    use_cuda: bool


@dataclass(frozen=True)
class Choices:
    """What a `DeepProfiler` was told."""

    recording: RecordingOptions
    dirpath: str | None
    filename: str | None
    """First part of the traces' names, and of the file for the summary; None with a template."""
    name: str | None
    """First part of the traces' names, or a template of them."""
    rows: int | None
    """Rows of the summary's table; 0 for all, None for what fits the screen."""
    on_demand: bool
    """Whether nothing is recorded until `deepscope attach` asks."""
    given: Mapping[str, Any]
    """The options of the recording as they were given."""
    sort: str | None
    """Number by which the summary's table is sorted; None for the report's own choice."""


def choose(dirpath: str | Path | None, filename: str | None, keywords: Mapping[str, Any]) -> Choices:
    """Check everything at once; raises `OptionError` naming the option and what to pass in its place."""
    given = dict(keywords)
    on_demand = bool(given.pop("on_demand", False))
    rows = given.pop("row_limit", None)
    sort = given.pop("sort_by_key", None)
    if given.pop("emit_nvtx", False):
        raise OptionError("emit_nvtx", True, "marks for NVIDIA's own profilers are made by Lightning's PyTorchProfiler")
    # Grouping by shapes needs them recorded; PyTorchProfiler leaves that second switch to the user.
    if given.pop("group_by_input_shapes", False):
        given["record_shapes"] = True
    if "record_module_names" in given:
        given["modules"] = given.pop("record_module_names")
    _drop_what_has_no_effect(given)
    folder = None if dirpath is None else str(dirpath)
    if (handler := _tensorboard_handler(given.get("on_trace_ready"))) is not None:
        given["on_trace_ready"] = None
        folder, filename = folder or handler[0], filename or handler[1]
    if folder is not None and "://" in folder:
        raise OptionError("dirpath", folder, "traces are recorded to a local folder; copy them from there")
    check_template(filename)
    recording = checked_options(given)
    if on_demand and (chosen := next((one for one in SCHEDULE_NAMES if given.get(one) is not None), None)):
        raise OptionError(chosen, given[chosen], "with on_demand=True `deepscope attach` says what is recorded")
    return Choices(
        recording=recording,
        on_demand=on_demand,
        given=given,
        dirpath=folder,
        filename=None if is_template(filename) else filename,
        name=filename,
        rows=_rows(rows),
        sort=_sort(sort),
    )


def _drop_what_has_no_effect(given: dict[str, Any]) -> None:
    for name, reason in _WITHOUT_EFFECT.items():
        value = given.pop(name, None)
        if value is not None and not (name == "export_to_chrome" and value):
            warnings.warn(f"DeepProfiler: {name}={value!r} has no effect here: {reason}", UserWarning, stacklevel=5)


def _tensorboard_handler(handler: Any) -> tuple[str, str | None] | None:
    """Folder and worker of a `torch.profiler.tensorboard_trace_handler`: DeepScope writes that layout by itself."""
    if getattr(handler, "__qualname__", "") != "tensorboard_trace_handler.<locals>.handler_fn":
        return None
    cells = dict(zip(handler.__code__.co_freevars, handler.__closure__ or (), strict=False))
    try:
        folder, worker = cells["dir_name"].cell_contents, cells["worker_name"].cell_contents
    except (KeyError, ValueError):
        return None
    return str(folder), worker


def _rows(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise OptionError("row_limit", value, "must be a number of rows, or -1 for all")
    return 0 if value == -1 else value


def _sort(key: str | None) -> str | None:
    """A key of the report's, from that or from `PyTorchProfiler`'s: `self_cuda_time_total` is `self`."""
    if key is None:
        return None
    words = _TORCH_SORT_KEYS.get(key.replace("cuda", "device"), key)
    if words not in table("line").sort_keys:
        known = ", ".join((*_TORCH_SORT_KEYS, *table("line").sort_keys))
        raise OptionError("sort_by_key", key, f"no such key; there are: {known}")
    return words
