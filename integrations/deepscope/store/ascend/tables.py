"""Tables of Ascend's profiler, from bytes to records: `step_trace_time.csv`, `communication.json` and the matrix.

A text that cannot be read raises a ValueError with a reason; a value in it that cannot be one is 0.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import msgspec

from deepscope.ranks.rank_summary import AscendCalls, AscendGroup, AscendLink, AscendStep

_LONGEST_NS = 10**15
"""Eleven days. A longer time is an instant that stands where a duration should: torch_npu writes such ones."""
_MOST_BYTES = 2**60
_MOST_RANKS = 2**24
NS_PER_US, NS_PER_MS = 1_000, 1_000_000
BYTES_PER_MB = 1_000_000
"""`Transit Size(MB)` over `Transit Time(ms)` is `Bandwidth(GB/s)`: they are decimal."""


def time_ns(value: object, unit_ns: int) -> int:
    """A time that is given in a unit."""
    return _scaled(value, unit_ns, _LONGEST_NS)


def size_bytes(value: object) -> int:
    """A size that is given in megabytes."""
    return _scaled(value, BYTES_PER_MB, _MOST_BYTES)


def rank_of(value: object) -> int | None:
    """The number of a rank; None for what is none."""
    text = str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 and int(text) < _MOST_RANKS else None


def step_of(value: object) -> int:
    """The number of a step: of `step12`, of `12`, and -1 of anything else."""
    number = rank_of(str(value).strip().removeprefix("step")) if isinstance(value, (str, int)) else None
    return -1 if number is None else number


def _scaled(value: object, unit: int, most: int) -> int:
    try:
        number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return 0
    scaled = number * unit
    return round(scaled) if math.isfinite(scaled) and 0 <= scaled <= most else 0


COLUMNS = {
    "Computing": "computing_ns",
    "Communication(Not Overlapped)": "exposed_ns",
    "Overlapped": "overlapped_ns",
    "Communication": "communication_ns",
    "Free": "free_ns",
    "Stage": "stage_ns",
    "Bubble": "bubble_ns",
    "Preparing": "preparing_ns",
}
"""Of `step_trace_time.csv`, in microseconds."""
_TIMES = {
    "Elapse Time(ms)": "elapsed_ns",
    "Transit Time(ms)": "transit_ns",
    "Wait Time(ms)": "wait_ns",
    "Synchronization Time(ms)": "synchronization_ns",
    "Idle Time(ms)": "idle_ns",
}
_OPERATOR = re.compile(r"^(?:hcom_)?([A-Za-z]+)")
_KINDS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "allgatherv": "all_gather", "reducescatter": "reduce_scatter",
    "reducescatterv": "reduce_scatter", "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallvc": "all_to_all",
    "broadcast": "broadcast", "send": "send", "receive": "recv", "recv": "recv", "batchsendrecv": "send_recv",
    "reduce": "reduce", "scatter": "scatter", "gather": "gather", "barrier": "barrier",
}  # fmt: skip
_PARTS_OF_TOTAL = ("top", "middle", "bottom")
"""In names of the matrix: calls that stand as examples beside `-total`, which has them in it."""


def decoded(text: bytes) -> Any:
    """A JSON text.

    Raises:
        ValueError: it is none.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(text)  # takes NaN, which Python's own writer writes
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from error


def rows_of(text: bytes) -> list[dict[str, str]]:
    """The rows of a CSV text by their columns' names.

    Raises:
        ValueError: it has no such table in it.
    """
    try:
        reader = csv.DictReader(StringIO(text.decode("utf-8-sig")))
        rows = [{key.strip(): value or "" for key, value in row.items() if isinstance(key, str)} for row in reader]
        names = [name.strip() for name in reader.fieldnames or ()]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"no CSV ({error})") from error
    if "Computing" not in names:
        raise ValueError("no column `Computing`")
    return [{key: value if isinstance(value, str) else "" for key, value in row.items()} for row in rows]


def step_row(row: dict[str, str]) -> AscendStep:
    """A row of `step_trace_time.csv`, or of the cluster's."""
    times = {field: time_ns(row.get(name), NS_PER_US) for name, field in COLUMNS.items()}
    return AscendStep(step=step_of(row.get("Step")), **times)


def read_steps(text: bytes) -> list[AscendStep]:
    """The steps of a rank's first device.

    Raises:
        ValueError: it is no such table.
    """
    rows = rows_of(text)
    device = rows[0].get("Device_id") if rows else None
    return [step_row(row) for row in rows if row.get("Device_id") == device]


def operators(document: object, step: int | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, process group and content of each operator, of all steps or of one; sums over operators are left out.

    Raises:
        ValueError: the document is no object of steps.
    """
    if not isinstance(document, dict):
        raise ValueError("no object of steps")  # noqa: TRY004 - as any damage in a file
    for name, kinds in document.items():
        if isinstance(kinds, dict) and (step is None or step_of(name) == step):
            for found in kinds.values():
                yield from operators_in(found)


def operators_in(table: object) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, process group and content of each operator in a table by `operator@group`, sums left out."""
    for operator, content in table.items() if isinstance(table, dict) else ():
        if isinstance(content, dict) and not is_sum(operator):
            word, _, group = operator.rpartition("@")
            yield (word, group, content) if word else (operator, "", content)


def is_sum(operator: str) -> bool:
    """Whether it names the sum over all operators."""
    return operator.lower().startswith("total")


def kind_of(operator: str) -> str:
    """torch's word for an operator of HCCL (`hcom_allReduce__868_0_1`, `allreduce-total`); "" where none fits."""
    found = _OPERATOR.match(operator)
    return _KINDS.get(found[1].lower(), "") if found is not None else ""


def read_calls(text: bytes, step: int | None) -> list[AscendCalls]:
    """`communication.json`.

    Raises:
        ValueError: it is no such document.
    """
    sums: dict[tuple[str, str], AscendCalls] = {}
    for operator, group, content in operators(decoded(text), step):
        add_calls(sums, operator, group, content)
    return list(sums.values())


def add_calls(sums: dict[tuple[str, str], AscendCalls], operator: str, group: str, content: dict[str, Any]) -> None:
    """One operator's times, to those of its kind and group."""
    times = content.get("Communication Time Info")
    if not isinstance(times, dict):
        return
    kind = kind_of(operator)
    one = sums.setdefault((group, kind), AscendCalls(group=group, kind=kind))
    one.calls += 1
    for name, field in _TIMES.items():
        setattr(one, field, getattr(one, field) + time_ns(times.get(name), NS_PER_MS))


def read_links(text: bytes, step: int | None) -> list[AscendLink]:
    """`communication_matrix.json`: its links are between ranks of a group, counted from -1 downwards.

    Raises:
        ValueError: it is no such document.
    """
    sums: dict[tuple[str, int, int, str], AscendLink] = {}
    for operator, group, content in operators(decoded(text), step):
        for name, link in content.items():
            add_link(sums, operator, group, name, link, in_group=True)
    return list(sums.values())


def add_link(
    sums: dict[tuple[str, int, int, str], AscendLink], operator: str, group: str, name: str, link: object,
    *, in_group: bool,
) -> None:  # fmt: skip
    """One link of one operator, to all of its pair, group and transport."""
    source, _, target = name.partition("-")
    ends = rank_of(source), rank_of(target)
    is_example = any(part in operator.rpartition("-")[2] for part in _PARTS_OF_TOTAL) and "-" in operator
    if not isinstance(link, dict) or ends[0] is None or ends[1] is None or is_example:
        return
    first, second = (-1 - ends[0], -1 - ends[1]) if in_group else (ends[0], ends[1])
    recorded = link.get("Transport Type")
    transport = recorded if isinstance(recorded, str) else ""
    one = sums.setdefault(
        (group, first, second, transport), AscendLink(group=group, source=first, target=second, transport=transport)
    )
    one.bytes += size_bytes(link.get("Transit Size(MB)"))
    one.time_ns += time_ns(link.get("Transit Time(ms)"), NS_PER_MS)


def groups_of(metadata: object) -> list[AscendGroup]:
    """The process groups that `profiler_metadata.json` tells."""
    recorded = metadata.get("parallel_group_info") if isinstance(metadata, dict) else None
    found = []
    for name, group in recorded.items() if isinstance(recorded, dict) else ():
        if not isinstance(group, dict):
            continue
        word, listed = group.get("group_name"), group.get("global_ranks")
        ranks = {rank_of(rank) for rank in listed} if isinstance(listed, list) else set()
        found.append(
            AscendGroup(
                key=group_key(name),
                name=word if isinstance(word, str) else "",
                ranks=sorted(rank for rank in ranks if rank is not None),
            )
        )
    return found


def group_key(name: str) -> str:
    """HCCL's number of a communicator, by which operators name it: two polynomial hashes of its name, 32 bits each."""
    first = second = 0
    for letter in name:
        first = (first * 29 + ord(letter)) & 0xFFFFFFFF
        second = (second * 131 + ord(letter)) & 0xFFFFFFFF
    return str(first << 32 | second)
