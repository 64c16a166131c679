"""The folders of a run on Ascend devices: one a rank, and which rank it is.

torch_npu writes a folder a rank, `<worker>_<time>_ascend_pt` (MindSpore's end in `_ascend_ms`): in it stand
`profiler_info_<rank>.json` and `profiler_metadata.json`, and in its `ASCEND_PROFILER_OUTPUT` the tables and the trace.
msprof-analyze writes `cluster_analysis_output` beside the folders.
https://gitcode.com/Ascend/msprof-analyze/blob/master/docs/zh/user_guide/cluster_analyse_instruct.md
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from deepscope.errors import DeepScopeError
from deepscope.store.files import TraceFile
from deepscope.trace.kineto.remote import filesystem_of, is_url, remote_errors

OUTPUT = "ASCEND_PROFILER_OUTPUT"
METADATA = "profiler_metadata.json"
RANK_FILES = ("step_trace_time.csv", "communication.json", "communication_matrix.json", "analysis.db")
CLUSTER_FILES = (
    "cluster_step_trace_time.csv",
    "cluster_communication.json",
    "cluster_communication_matrix.json",
    "communication_group.json",
)
_TRACE = re.compile(rf"^(?P<cluster>.*[/\\])?(?P<rank>[^/\\]+)[/\\]{OUTPUT}[/\\]trace_view\.json(?:\.gz)?$")
_INFO = re.compile(r"profiler_info_(\d{1,8})\.json$")
_NAMED = re.compile(r"rank[-_]?(\d{1,8})(?!\d)", re.IGNORECASE)
_TIME = re.compile(r"_(\d{14,20})_ascend_(?:pt|ms)[/\\]?$")
_INSIDE = re.compile(rf"{OUTPUT}[/\\]$")


@dataclass(slots=True)
class RankFolder:
    """The folder of one rank."""

    path: str
    """With a separator at its end."""
    rank: int | None = None
    """None where neither a file nor the folder's name tells."""
    files: dict[str, TraceFile] = field(default_factory=dict)
    """`RANK_FILES` and the metadata that there are."""

    @property
    def time(self) -> int:
        """When it was recorded, as its name says; 0 where it does not."""
        found = _TIME.search(self.path)
        return int(found[1].ljust(20, "0")) if found is not None else 0


def cluster_folder(path: str) -> str:
    """Of a trace that Ascend's profiler wrote: the folder in which its ranks' folders lie; "" of any other file."""
    own, mark, archive = path.partition("::")
    found = _TRACE.match(own)
    return (found["cluster"] or "") + mark + archive if found is not None else ""


def tables_of(paths: Sequence[str], where: str, *, is_alone: bool) -> str:
    """Where the tables beside traces lie, if Ascend's profiler wrote these; "" of any others.

    Args:
        paths: of the traces.
        where: what they were found below; "" where that is not known.
        is_alone: whether no other run was found there, whose tables would be taken for theirs.
    """
    folders = {folder for path in paths if (folder := cluster_folder(path))}
    whole = where if is_url(where) or not where else os.path.abspath(where)  # noqa: PTH100
    if not folders or not where:
        return ""
    if whole in paths and "::" not in whole:  # a single trace: the tables beside it are its rank's
        return re.sub(r"[^/\\]+$", "", whole)
    if is_alone:
        return where
    only = folders.pop()
    return only if not folders and only.startswith(whole) else where


def rank_of_trace(path: str) -> int | None:
    """Of a trace that Ascend's profiler wrote: its rank, as the files beside it say; None of any other file."""
    own, mark, archive = path.partition("::")
    found = _TRACE.match(own)
    if found is None:
        return None
    return _rank(_names_in(own[: found.end("rank")] + mark + archive), found["rank"])


def rank_folder_of(path: str) -> str:
    """The folder that names the rank, of the one in it that holds the tables; any other path as it is."""
    whole = path if is_url(path) else os.path.abspath(path)  # noqa: PTH100
    found = re.fullmatch(rf"(.+)[/\\]{OUTPUT}[/\\]*", whole)
    return found[1] if found is not None else path


def rank_folders(files: Iterable[TraceFile]) -> list[RankFolder]:
    """The ranks' folders among files, by rank; of two of one rank the newer one."""
    folders: dict[str, RankFolder] = {}
    names: Mapping[str, list[str]] = defaultdict(list)
    for file in files:
        inside = _INSIDE.search(file.folder)
        folder = file.folder[: inside.start()] if inside is not None else file.folder
        if (inside is not None and file.name in RANK_FILES) or (inside is None and file.name == METADATA):
            folders.setdefault(folder, RankFolder(folder)).files[file.name] = file
        elif inside is None and _INFO.match(file.name):
            folders.setdefault(folder, RankFolder(folder))
            names[folder].append(file.name)
    newest: dict[int, RankFolder] = {}
    nameless = []
    for one in sorted(folders.values(), key=lambda one: (one.time, one.path)):
        one.rank = _rank(names[one.path], re.split(r"[/\\]", one.path.rstrip("/\\"))[-1])
        if one.rank is None:
            nameless.append(one)
        else:
            newest[one.rank] = one
    return [*(newest[rank] for rank in sorted(newest)), *nameless]


def _names_in(folder: str) -> list[str]:
    """What lies in a folder, by name; nothing where it cannot be asked."""
    try:
        if not is_url(folder):
            with os.scandir(folder) as entries:
                return [entry.name for entry in entries]
        with remote_errors(folder):
            fs, path = filesystem_of(folder)
            return [str(name).rstrip("/").rpartition("/")[2] for name in fs.ls(path, detail=False)]
    except (OSError, ValueError, DeepScopeError):
        return []


def _rank(names: Iterable[str], folder: str) -> int | None:
    """By the name of a file in the folder, else by the folder's own."""
    for name in names:
        if (found := _INFO.match(name)) is not None:
            return int(found[1])
    named = _NAMED.search(folder)
    return int(named[1]) if named is not None else None
