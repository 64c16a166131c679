"""The text of a synthetic rank's trace: a step's events with places for times and groups, filled for each rank."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from synthetic_ranks.program import (
    IDENTIFIERS,
    PROCESS,
    ROOT,
    STRIDE,
    TRAIN,
    DeviceEvent,
    Event,
    HostEvent,
    Program,
    Source,
)
from synthetic_ranks.simulation import Floats, Moments
from synthetic_ranks.truth import Mesh, Truth

__all__ = ["BASE_NS", "Writer"]

BASE_NS = 1_795_377_600_000_000_000
_FIRST_STEP, _FIRST_SEQUENCE = 5, 100
_TORCH_LISTS = 30
"""Ranks of a group that torch writes at most."""


class Writer:
    """Writes a rank's trace: the events as text with places for times and groups, filled for each rank."""

    def __init__(self, source: Source, program: Program, model: list[str], mesh: Mesh, steps: int) -> None:
        self._source, self._program, self._model, self._mesh, self._steps = source, program, model, mesh, steps
        self._groups = mesh.groups()
        self._texts: dict[tuple[bool, bool, bool], tuple[str, list[int], list[int]]] = {}

    def _events(self, first: bool, last: bool, more: bool) -> tuple[str, list[int], list[int]]:
        """The text of a step's events, and which of the program's events these are."""
        key = (first, last, more)
        if key not in self._texts:
            gone = {word for word, without in (("recv", first), ("send", last)) if without}

            def here(one: HostEvent | DeviceEvent) -> bool:
                return one.message not in gone and (more or not one.work)

            hosts = [place for place, host in enumerate(self._program.hosts) if here(host)]
            devices = [place for place, one in enumerate(self._program.devices) if here(one)]
            texts = [self._host(self._program.hosts[place]) for place in hosts]
            texts += [self._device(self._program.devices[place]) for place in devices]
            self._texts[key] = (",\n".join(texts), hosts, devices)
        return self._texts[key]

    def _host(self, host: HostEvent) -> str:
        args = dict(host.event.get("args", {}))
        told = ""
        if host.event["name"] == "record_param_comms":
            inside = [one for one in self._program.devices if host.start <= one.at < host.end and one.group]
            if inside:
                told = f"\0{inside[0].message or inside[0].group}\0{self._sequence(inside[0])}"
        return _template({"ph": "X", "cat": host.event["cat"], "name": host.event["name"], "pid": PROCESS,
                          "tid": PROCESS, "args": args}, told)  # fmt: skip

    def _device(self, one: DeviceEvent) -> str:
        args = {**one.event.get("args", {}), "device": 0, "stream": one.stream}
        told = f"\0{one.message or one.group}\0{self._sequence(one)}" if one.group else ""
        return _template({"ph": "X", "cat": one.event["cat"], "name": one.event["name"], "pid": 0, "tid": one.stream,
                          "args": args}, told)  # fmt: skip

    def _sequence(self, one: DeviceEvent) -> int:
        return [
            other for other in self._program.devices if other.group == one.group and other.message == one.message
        ].index(one)

    def text(self, rank: int, moments: Moments, cuts: Floats, truth: Truth) -> bytes:
        """The trace of a rank."""
        mesh = self._mesh
        stage = rank // mesh.stage_size
        more = any(one.rank == rank and one.cause == "work" for one in truth.stragglers)
        text, hosts, devices = self._events(stage == 0, stage == mesh.pipeline - 1, more)
        template = self._told(text, rank)
        begins = np.array([self._program.hosts[place].start for place in hosts])
        ends = np.array([self._program.hosts[place].end for place in hosts])
        clock = truth.offset_ns[rank]
        parts = []
        for step in range(self._steps):
            knots = moments.knots[step][:, rank]
            start = np.concatenate((np.interp(begins, cuts, knots), moments.start[step][devices, rank]))
            end = np.concatenate((np.interp(ends, cuts, knots), moments.end[step][devices, rank]))
            span = np.array([knots[0], knots[-1]])
            times = [
                np.round(moment * (1 + truth.drift[rank]) + clock).astype(np.int64) + 10**12
                for moment in (start, end, span)
            ]
            parts.append(self._step(template, step, *times))
        return self._document(rank, ",\n".join(parts), truth)

    def _step(self, template: _Filled, step: int, start: Any, end: Any, span: Any) -> str:
        length = np.maximum(end - start, 0)
        columns = np.stack((start // 1000, start % 1000, length // 1000, length % 1000), axis=1)
        stride = step * STRIDE
        values: list[int] = []
        for row, shifts in zip(columns.tolist(), template.shifts, strict=True):
            values += row[:4]
            values += [value + (step * per if per else stride) for value, per in shifts]
        begin, duration = int(span[0]), int(span[1] - span[0])
        own = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{_FIRST_STEP + step}", "pid": PROCESS,
               "tid": PROCESS, "ts": begin / 1000, "dur": duration / 1000,
               "args": {"External id": stride + 1, "Ev Idx": 0}}  # fmt: skip
        return json.dumps(own) + ",\n" + template.text % tuple(values)

    def _told(self, text: str, rank: int) -> _Filled:
        return _Filled(
            text, {word: self._group_of(rank, word) for word in ("tp", "dp", "recv", "send")}, self._counts()
        )

    def _counts(self) -> dict[str, int]:
        """Calls a step, by group or message."""
        words = [one.message or one.group for one in self._program.devices]
        return {word: words.count(word) for word in ("tp", "dp", "recv", "send")}

    def _group_of(self, rank: int, word: str) -> dict[str, Any]:
        """What torch writes of a call besides its number."""
        axis = "pp" if word in ("recv", "send") else word
        mine = (one for one in self._groups if one.description == f"mesh_{axis}" and rank in one.ranks)
        group = next(mine, self._groups[0])
        elements = 2048 * 4 * 4096
        ranks = group.ranks
        listed = ", ".join(map(str, ranks[:_TORCH_LISTS])) + (
            f", ..., {ranks[-1]}" if len(ranks) > _TORCH_LISTS else ""
        )
        told = {"Collective name": word if axis == "pp" else "allreduce", "In msg nelems": elements,
                "Out msg nelems": elements, "Group size": len(ranks), "dtype": "Half", "Process Group Name": group.name,
                "Process Group Description": group.description, "Process Group Ranks": f"[{listed}]"}  # fmt: skip
        if word == "send":
            told["Dst Rank"] = rank + self._mesh.stage_size
        if word == "recv":
            told["Src Rank"] = rank - self._mesh.stage_size
        return told

    def _document(self, rank: int, events: str, truth: Truth) -> bytes:
        mine = [one for one in self._groups if rank in one.ranks]
        listed = [{"pg_name": one.name, "pg_desc": one.description, "backend_config": "cuda:nccl",
                   "pg_size": len(one.ranks), "ranks": one.ranks} for one in mine]  # fmt: skip
        texts = {"train.py": "\n".join(TRAIN) + "\n", "model.py": "\n".join(self._model) + "\n"}
        files = [{"path": f"{ROOT}/{name}", "sha256": "", "text": text} for name, text in texts.items()]
        head = {
            "schemaVersion": 1,
            "deepscope": {"format": 2, "version": "0.1.0", "run_id": "synthetic", "window": 0, "rank": rank,
                          "world_size": truth.world_size, "complete": True, "program": "train.py",
                          "hostname": f"node{rank // 8:03}", "pid": PROCESS, "project_root": ROOT,
                          "files": files, "scopes": self._program.scopes},
            "deviceProperties": self._source.document.get("deviceProperties", [])[:1],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": truth.world_size,
                                "pg_count": len(listed), "pg_config": listed, "nccl_version": "2.21.5"},
            "baseTimeNanoseconds": BASE_NS - 10**12,
        }  # fmt: skip
        named = [{"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "python"}},
                 {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}]  # fmt: skip
        start = json.dumps(head)[:-1] + ', "traceEvents": [\n' + ",\n".join(map(json.dumps, named)) + ",\n"
        return (start + events + "\n]}\n").encode()


def _template(event: Event, told: str) -> str:
    """An event as text with marks for its times, its identifiers and its group."""
    args = {key: f"\0id{value}" if key in IDENTIFIERS and isinstance(value, int) else value
            for key, value in event["args"].items()}  # fmt: skip
    if told:
        args["\0told"] = told
    return json.dumps({"ts": "\0ts", "dur": "\0dur", **event, "args": args})  # values are filled in in this order


_MARKS = re.compile(r'"\\u0000id(\d+)"|"\\u0000told": "\\u0000(\w+)\\u0000(\d+)"|\n')


class _Filled:
    """The text of a step's events with a rank's groups: `text % values` is the step."""

    def __init__(self, text: str, told: dict[str, dict[str, Any]], counts: dict[str, int]) -> None:
        self.shifts: list[list[tuple[int, int]]] = [[]]
        """Of each event, what its numbers are in the first step, and how many come a step (0: identifiers)."""
        words = {key: json.dumps(value)[1:-1].replace("%", "%%") for key, value in told.items()}

        def fill(found: re.Match[str]) -> str:
            identifier, word, number = found.groups()
            if identifier is not None:
                self.shifts[-1].append((int(identifier), 0))
                return "%d"
            if word is not None:
                self.shifts[-1].append((_FIRST_SEQUENCE + int(number), counts[word]))
                return f'{words[word]}, "Seq": %d'
            self.shifts.append([])
            return "\n"

        text = _MARKS.sub(fill, text.replace("%", "%%"))
        self.text = text.replace('"\\u0000ts"', "%d.%03d").replace('"\\u0000dur"', "%d.%03d")
