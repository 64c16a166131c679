"""How synthetic ranks are arranged, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

__all__ = ["CAUSES", "Cause", "Group", "Mesh", "Planted", "Truth", "truth_path"]

Cause = Literal["hardware", "work", "data", "host"]
CAUSES: tuple[Cause, ...] = ("hardware", "work", "data", "host")


@dataclass(frozen=True)
class Mesh:
    """How ranks are numbered: tensor-parallel neighbours first, then data-parallel ones, then the pipeline's stages."""

    tensor: int
    data: int
    pipeline: int

    @classmethod
    def of(cls, ranks: int) -> Mesh:
        """Eight by tensor; by pipeline 2 from 32 ranks on, 4 from 256 on.

        Raises:
            ValueError: it is no power of two, or less than two.
        """
        if ranks < 2 or ranks & (ranks - 1):
            raise ValueError(f"{ranks} ranks: give a power of two from 2 on")
        tensor = min(8, ranks)
        pipeline = 4 if ranks >= 256 else 2 if ranks >= 32 else 1
        return cls(tensor, ranks // tensor // pipeline, pipeline)

    @property
    def size(self) -> int:
        return self.tensor * self.data * self.pipeline

    @property
    def stage_size(self) -> int:
        return self.tensor * self.data

    def groups(self) -> list[Group]:
        """The process groups, numbered as torch numbers them: the whole world first."""
        ranks = np.arange(self.size).reshape(self.pipeline, self.data, self.tensor)
        found = [("default_pg", list(range(self.size)))]
        for axis, word in ((2, "tp"), (1, "dp"), (0, "pp")):
            rows = np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis]).tolist()
            found += [(f"mesh_{word}", row) for row in rows if len(row) > 1]
        return [Group(str(number), word, members) for number, (word, members) in enumerate(found)]


@dataclass(frozen=True)
class Group:
    """A process group, as `pg_config` has it."""

    name: str
    description: str
    ranks: list[int]


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A straggler; times a step."""

    rank: int
    cause: Cause
    file: str
    line: int
    """The line that makes it late; of slow hardware there is none, and it is 0."""
    excess_ns: int
    """By how much its own step, without waits for others, is longer than another rank's of its stage."""
    factor: float = 1.0
    """Of slow hardware: how much longer its kernels take."""


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the traces."""

    world_size: int
    tensor: int
    data: int
    pipeline: int
    steps: int
    stragglers: list[Planted]
    offset_ns: list[int]
    """By rank: its clock at the window's start less that of rank 0."""
    drift: list[float]
    """By rank: by how much its clock is faster; 1e-6 is a microsecond a second."""
    collectives: int
    """By rank, without messages."""
    transfer_ns: int
    """Of each collective."""


def truth_path(folder: Path) -> Path:
    """Beside the folder, not in it: some readers take every JSON file for a trace."""
    return folder.parent / f"{folder.name}.truth.json"
