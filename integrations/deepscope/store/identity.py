"""What a trace's name and first bytes say of its run, stage, window and rank, without reading the trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.files import REMOTE_AT_ONCE, TraceFile
from deepscope.store.head import is_trace, read_head, recorded_ns
from deepscope.trace.format.header import glance
from deepscope.trace.kineto.remote import is_url

_SUFFIX = re.compile(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$|(?:\.trace)?\.gz$|\.trace$")
_STAGES = frozenset({"fit", "validate", "test", "predict", "sanity_check"})
_RANK_PART = re.compile(r"rank(\d+)$")
_RANK_WORD = re.compile(r"rank[-_]?(\d+)", re.IGNORECASE)
_DISTRIBUTED = re.compile(rb'"distributedInfo"\s*:\s*\{([^{}\[\]]*)')


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of a trace before it is read; the trace itself has the last word."""

    looks_like_trace: bool
    worker: str
    """The name without time, rank and stage."""
    run_id: str = ""
    stage: str = ""
    window: int | None = None
    rank: int | None = None
    world_size: int = 1
    program: str = ""
    arguments: str = ""
    """A digest of them; "" where the trace states none."""
    recorded_ns: int = 0
    """Since the epoch, as the trace says; 0 where it does not."""

    @property
    def worker_pattern(self) -> str:
        """The worker's name without its digits: the same for hosts and process ids of one run."""
        return re.sub(r"\d+", "#", self.worker)


def identify_all(files: Sequence[TraceFile]) -> list[Identity]:
    """What is known of each; of remote files many are asked for at once, as each is waited for."""
    if not any(is_url(file.path) for file in files):
        return [identify(file) for file in files]
    with ThreadPoolExecutor(min(len(files), REMOTE_AT_ONCE), "deepscope-head") as pool:
        return list(pool.map(identify, files))


def identify(file: TraceFile) -> Identity:
    """Reads the name and the first 64 KiB of text; a file that cannot be read looks like no trace."""
    worker, stage, rank = parse_name(file.name)
    rank = rank_of_trace(file.path) if rank is None else rank
    head = read_head(file)
    if not is_trace(head):
        return Identity(looks_like_trace=False, worker=worker, stage=stage, rank=rank)
    header = glance(head)
    distributed = _DISTRIBUTED.search(head)
    group = distributed[1] if distributed else b""
    recorded_rank = _number(group, b"rank")
    if recorded_rank is None:
        recorded_rank = header.rank
    size = _number(group, b"world_size") or header.world_size
    return Identity(
        looks_like_trace=True,
        worker=worker,
        run_id=header.run_id,
        stage=stage or header.stage,
        window=header.window,
        rank=recorded_rank if recorded_rank is not None else rank,
        world_size=size or 1,
        program=header.program,
        arguments=header.arguments,
        recorded_ns=recorded_ns(head, header.recorded_at),
    )


def parse_name(name: str) -> tuple[str, str, int | None]:
    """Takes a file name apart: worker, stage ("" where it names none) and rank.

    DeepScope's names are `<worker>.<stage>.rank<R>.<ns>.pt.trace.json.gz`; in others any `rank<R>`, `rank-<R>` or
    `rank_<R>` is taken for the rank.
    """
    parts = _SUFFIX.sub("", name).split(".")
    if len(parts) > 1 and parts[-1].isdigit() and len(parts[-1]) >= 10:
        parts.pop()
    rank = None
    if len(parts) > 1 and (match := _RANK_PART.match(parts[-1])):
        rank = int(match[1])
        parts.pop()
    stage = parts.pop() if len(parts) > 1 and parts[-1] in _STAGES else ""
    worker = ".".join(parts)
    if rank is None and (match := _RANK_WORD.search(worker)):
        rank = int(match[1])
        worker = worker[: match.start(1)] + "*" + worker[match.end(1) :]
    return worker, stage, rank


def _number(text: bytes, key: bytes) -> int | None:
    match = re.search(rb'"' + key + rb'"\s*:\s*(\d{1,9})\b', text)
    return int(match[1]) if match else None
