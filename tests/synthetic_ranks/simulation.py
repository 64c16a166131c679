"""The program of a step, run by all ranks at once: who waits for whom, and when each kernel starts and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synthetic_ranks.program import COMPUTE, RING, WIRE, Program
from synthetic_ranks.truth import Mesh, Planted

__all__ = ["Floats", "Moments", "Simulation"]

Floats = npt.NDArray[np.float64]
_LATENCY_NS, _AFTER_SYNC_NS = 4_000, 5_000


@dataclass
class _Stage:
    """What happens to the ranks of a stage: when its CPU and streams are free, by rank."""

    host: Floats
    free: dict[int, Floats]
    needs: Floats
    """When the last collective ended, for the kernels behind it."""
    arrived: Floats
    """At the message of the stage before."""


@dataclass
class Moments:
    """The simulated times: knots of each step's CPU time, and each kernel's start and end; shape (n, ranks)."""

    knots: list[Floats]
    start: list[Floats]
    end: list[Floats]


class Simulation:
    def __init__(self, program: Program, mesh: Mesh, steps: int, stragglers: Sequence[Planted], seed: int) -> None:
        self._program, self._mesh, self._steps = program, mesh, steps
        self._noise = np.random.default_rng(seed)
        self._slow, self._more = np.ones(mesh.size), np.zeros(mesh.size, np.bool_)
        self._loader, self._prepare = np.zeros(mesh.size), np.zeros(mesh.size)
        for one in stragglers:
            self._slow[one.rank] = one.factor
            self._more[one.rank] = one.cause == "work"
            self._loader[one.rank] = one.excess_ns if one.cause == "data" else 0
            self._prepare[one.rank] = one.excess_ns if one.cause == "host" else 0
        self.cuts = np.array(sorted(program.cuts))
        self._launched = np.searchsorted(self.cuts, [one.at for one in program.devices], side="right") - 1
        receive = next(number for number, one in enumerate(program.devices) if one.message == "recv")
        self._behind_receive = int(self._launched[receive]) + 1

    def run(self) -> Moments:
        mesh, devices = self._mesh, len(self._program.devices)
        shape = (mesh.size,)
        moments = Moments([], [], [])
        stages = [slice(stage * mesh.stage_size, (stage + 1) * mesh.stage_size) for stage in range(mesh.pipeline)]
        start = self._noise.uniform(0, 200_000, shape)
        states = [
            _Stage(start[stage].copy(), {s: start[stage].copy() for s in (COMPUTE, RING, WIRE)}, start[stage].copy(),
                   start[stage].copy())
            for stage in stages
        ]  # fmt: skip
        for _ in range(self._steps):
            moments.knots.append(np.zeros((len(self.cuts), *shape)))
            moments.start.append(np.zeros((devices, *shape)))
            moments.end.append(np.zeros((devices, *shape)))
            for number, stage in enumerate(stages):
                self._segments(moments, states, number, stage, range(self._behind_receive))
            for number, stage in enumerate(stages):
                self._segments(moments, states, number, stage, range(self._behind_receive, len(self.cuts)))
        return moments

    def _segments(
        self, moments: Moments, states: list[_Stage], number: int, stage: slice, segments: Iterable[int]
    ) -> None:
        """These segments of the CPU, and what they launch."""
        program, state = self._program, states[number]
        knots = moments.knots[-1][:, stage]
        count = stage.stop - stage.start
        for segment in segments:
            begin = self.cuts[segment]
            knots[segment] = state.host
            if segment + 1 == len(self.cuts):
                break
            length = (self.cuts[segment + 1] - begin) * self._noise.lognormal(0.0, 0.02, count)
            if program.work[0] <= begin < program.work[1]:
                length = np.where(self._more[stage], length, 0.0)
            if begin == program.loader:
                length = length + self._loader[stage]
            if begin == program.prepare:
                length = length + self._prepare[stage]
            scale = length / (self.cuts[segment + 1] - begin)
            for place in np.flatnonzero(self._launched == segment).tolist():
                launch = state.host + (program.devices[place].at - begin) * scale
                self._launch(moments, states, number, stage, place, launch)
            state.host = state.host + length
            if begin in program.syncs:
                # A stream's wait is for the kernels, the device's for messages and collectives, too.
                free = [state.free[COMPUTE]] if segment + 4 < len(self.cuts) else list(state.free.values())
                state.host = np.maximum(state.host, np.maximum.reduce(free) + _AFTER_SYNC_NS)

    def _launch(
        self, moments: Moments, states: list[_Stage], number: int, stage: slice, place: int, launch: Floats
    ) -> None:
        one, state, mesh = self._program.devices[place], states[number], self._mesh
        starts, ends = moments.start[-1][place], moments.end[-1][place]
        ready = np.maximum(launch + _LATENCY_NS, state.free[one.stream])
        if one.group in ("tp", "dp"):
            start = np.maximum(ready, state.free[COMPUTE] + 1_000)
            grid = start.reshape(mesh.data, mesh.tensor)
            last = grid.max(axis=1 if one.group == "tp" else 0, keepdims=True)
            end = np.broadcast_to(last + one.duration, grid.shape).reshape(-1)
            state.free[RING] = state.needs = end
        elif one.message:
            self._exchange(moments, states, number, stage, place, ready)
            return
        else:
            start = np.maximum(ready, state.needs + 1_000)
            length = one.duration * self._slow[stage] * self._noise.lognormal(0.0, 0.01, len(start))
            here = self._more[stage] | (not one.work)
            end = np.where(here, start + length, state.free[COMPUTE])
            state.free[COMPUTE] = end
        starts[stage], ends[stage] = start, end

    def _exchange(
        self, moments: Moments, states: list[_Stage], number: int, stage: slice, place: int, ready: Floats
    ) -> None:
        """A message ends on both sides together; the receiving side is known to be there first."""
        one, state = self._program.devices[place], states[number]
        starts, ends = moments.start[-1][place], moments.end[-1][place]
        if one.message == "recv":
            starts[stage] = state.arrived = ready
            return
        if number + 1 == len(states):
            return
        start = np.maximum(ready, state.free[COMPUTE] + 1_000)
        behind = states[number + 1]
        end = np.maximum(start, behind.arrived) + one.duration
        starts[stage], ends[stage] = start, end
        state.free[WIRE] = end
        receive = next(index for index, other in enumerate(self._program.devices) if other.message == "recv")
        moments.end[-1][receive][slice(stage.stop, stage.stop + len(end))] = end
        behind.free[WIRE] = behind.needs = end
