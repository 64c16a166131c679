"""What a file's name and first bytes say of a trace: whether it is one, its run, stage, window and rank."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from deepscope.errors import DeepScopeError
from deepscope.store.ascend.folders import rank_of_trace
from deepscope.store.files import REMOTE_AT_ONCE, TraceFile, first_bytes
from deepscope.trace.format.header import glance
from deepscope.trace.format.tolerant import with_depth
from deepscope.trace.kineto.remote import is_url

HEAD_BYTES = 1 << 16
"""Of the text: enough for `deviceProperties` of eight devices and `distributedInfo`, which torch writes first."""
_PHASE = re.compile(rb'"ph"\s*:\s*"[A-Za-z(){}]"')
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_TORCH_KEYS = frozenset({b"deviceProperties", b"distributedInfo", b"deepscope", b"trace_id", b"baseTimeNanoseconds"})
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{1,19})(?:\.\d*)?')
_TIMES_TRIED = 64
_EARLIEST_NS, _LATEST_NS = 1_400_000_000 * 10**9, 4_000_000_000 * 10**9
"""2014 to 2096: what lies outside is the time since some machine was started."""


def _read_head(file: TraceFile) -> bytes:
    """The first 64 KiB of the text, unpacked; nothing of a file that cannot be read."""
    try:
        raw = first_bytes(file, HEAD_BYTES)
        if raw[:2] == b"\x1f\x8b":
            return zlib.decompressobj(wbits=31).decompress(raw, HEAD_BYTES)
    except (OSError, ValueError, zlib.error, DeepScopeError):
        return b""
    return raw


def _is_trace(head: bytes) -> bool:
    """Whether a text that begins like this is a Chrome trace.

    It is an object whose own `traceEvents` is an array, or an array of events. A key of that name deeper down, or in a
    text, does not count: reports, notebooks and settings quote traces. Where the head ends before the events, an
    object with torch's own keys is taken for a trace.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text[:1] == b"[":
        return _is_array_of_events(text)
    if text[:1] != b"{":
        return False
    keys: set[bytes] = set()
    for token, depth in with_depth(text):
        if depth == 0:
            return False  # all of it was seen
        if depth == 1 and token[2] is not None:
            if token[1] == b"traceEvents":
                return _ARRAY.match(text, token.start()) is not None
            keys.add(token[1])
    return len(head) >= HEAD_BYTES and b"schemaVersion" in keys and not keys.isdisjoint(_TORCH_KEYS)


def _is_array_of_events(text: bytes) -> bool:
    """Whether the first element is an object with a phase and a time, a process or a name of its own."""
    keys: set[bytes] = set()
    for token, depth in with_depth(text):
        sign = token[0]
        if sign in b"}]":
            if depth < 2:
                break
        elif sign in b"{[":
            if depth == 2 and sign == b"[":
                return False
        elif depth == 1:
            return False
        elif depth == 2 and token[2] is not None:
            if token[1] == b"ph" and _PHASE.match(text, token.start()) is None:
                return False
            keys.add(token[1])
    return b"ph" in keys and not keys.isdisjoint({b"ts", b"pid"})


def recorded_ns(head: bytes, stated: str = "") -> int:
    """When it was recorded, in nanoseconds since the epoch, as the text says; 0 where it does not.

    Args:
        head: of the whole text: its first event with a time since the epoch.
        stated: the time that DeepScope's header states.
    """
    if stated:
        try:
            return int(datetime.fromisoformat(stated.replace("Z", "+00:00")).timestamp() * 10**9)
        except (ValueError, OverflowError):
            pass
    base = _BASE.search(head)
    base_ns = int(base[1]) if base is not None else 0
    for count, found in enumerate(_TIME.finditer(head)):
        time_ns = base_ns + int(found[1]) * 1_000
        if _EARLIEST_NS < time_ns < _LATEST_NS:
            return time_ns
        if count == _TIMES_TRIED:
            break
    return 0


_SUFFIX = re.compile(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$|(?:\.trace)?\.gz$|\.trace$")
_STAGES = frozenset({"fit", "validate", "test", "predict", "sanity_check"})
_RANK_PART = re.compile(r"rank(\d+)$")
_RANK_WORD = re.compile(r"rank[-_]?(\d+)", re.IGNORECASE)
_TENSOR_PARALLEL = re.compile(r"(?<=-TP-)(\d+)(?=-|$)(?!.*-(?:DP|PP)-)")
"""SGLang's, where no other rank stands in the name."""
_PROFILED_BY_STAGE = re.compile(r"(?<=-)(TP-\d+(?:-[A-Z]+-\d+)*)-(EXTEND|DECODE)$")
_SERVING_STAGES = {"EXTEND": "prefill", "DECODE": "decode"}
"""SGLang's `profile_by_stage` writes a file for each."""
_ENGINE = re.compile(r"(?:^|_)dp(\d{1,6})_pp(\d{1,6})_tp(\d{1,6})(?:_[a-z]+\d{1,6})*_rank(\d{1,6})(?=\.)")
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
    head = _read_head(file)
    if not _is_trace(head):
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
        rank=rank_of_all_engines(file.name, recorded_rank if recorded_rank is not None else rank, size or 1),
        world_size=size or 1,
        program=header.program,
        arguments=header.arguments,
        recorded_ns=recorded_ns(head, header.recorded_at),
    )


def parse_name(name: str) -> tuple[str, str, int | None]:
    """Takes a file name apart: worker, stage ("" where it names none) and rank.

    DeepScope's names are `<worker>.<stage>.rank<R>.<ns>.pt.trace.json.gz`; in others any `rank<R>`, `rank-<R>` or
    `rank_<R>` is taken for the rank, else SGLang's `-TP-<R>`, whose `-EXTEND` and `-DECODE` are stages.
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
    if match := _PROFILED_BY_STAGE.search(worker):
        stage, worker = _SERVING_STAGES[match[2]], worker[: match.end(1)]
    if rank is None and (match := _RANK_WORD.search(worker) or _TENSOR_PARALLEL.search(worker)):
        rank = int(match[1])
        worker = worker[: match.start(1)] + "*" + worker[match.end(1) :]
    return worker, stage, rank


def rank_of_all_engines(name: str, recorded: int | None, world_size: int) -> int | None:
    """The rank among all engines of a vLLM server with data parallelism, each of which counts its own from 0.

    vLLM's `get_worker_rank_suffix` names files `dp1_pp0_tp0_dcp0_ep1_rank0`, by the rank in the engine.

    Args:
        name: the file's.
        recorded: the rank that the trace states, else that of its name; it stays where it counts all engines already.
        world_size: as the trace states it: of one engine, where `recorded` counts within one.
    """
    found = _ENGINE.search(name)
    if found is None:
        return recorded
    engine, stage, shard, rank = map(int, found.groups())
    if recorded not in {None, rank} or (stage == 0 and rank != shard):
        return recorded
    return engine * world_size + rank


def _number(text: bytes, key: bytes) -> int | None:
    match = re.search(rb'"' + key + rb'"\s*:\s*(\d{1,9})\b', text)
    return int(match[1]) if match else None
