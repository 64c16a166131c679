"""Makes the traces of many ranks out of a real one's, with stragglers and clocks that are known.

The source is one rank of a Megatron run (the shared trace of astra-sim): its operators, launches and kernels, and its
tensor-parallel all-reduces. A step of it becomes a program for all ranks of a mesh (tensor x data x pipeline): Python
lines around its operators, a part of its all-reduces made over the data-parallel group, and an activation received from
the pipeline's stage before and sent to the one behind. This program is then run by a small simulation, all ranks at
once:

- the CPU runs the program's segments one after another, each as long as in the source, with noise;
- a kernel starts when it is launched, its stream is free and what it needs has ended: a collective needs the kernels
  launched before it, the kernels behind a collective need it;
- a collective's kernel starts on each rank as it arrives there, and ends on all ranks of the group together, its
  transfer after the last one's arrival; so do the two sides of a message;
- `cudaDeviceSynchronize` holds the CPU until the device has ended.

So whoever is late makes others wait, as in a run. Four things make a rank late, each at a known line:

| cause | what is done to the rank |
|---|---|
| hardware | its kernels take longer, by a factor |
| work | it calls one operator of the model more often |
| data | its data loader takes longer |
| host | a line of Python takes longer |

Ranks of one host share a clock, which is off by an offset and drifts. `FOLDER.truth.json` beside the
folder tells all of it.
"""

from __future__ import annotations

import multiprocessing
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from synthetic_ranks.program import LOADER_LINE, PACK_LINE, PROCESS, ROOT, TRANSFER_NS, make_program, read_source
from synthetic_ranks.simulation import Floats, Moments, Simulation
from synthetic_ranks.truth import CAUSES, Mesh, Planted, Truth, truth_path
from synthetic_ranks.writing import BASE_NS, Writer

__all__ = ["SOURCE", "write_ranks"]

SOURCE = Path(__file__).resolve().parents[3] / "shared/traces/astra-sim-megatron-tp8-megatron_kineto_0.json.gz"


def plant(mesh: Mesh, each: int, seed: int, step_ns: int, work_line: int) -> list[Planted]:
    """`each` stragglers of every cause, no two of them in one tensor-parallel group.

    Raises:
        ValueError: there are more of them than groups.
    """
    groups = mesh.size // mesh.tensor
    if each * len(CAUSES) > groups:
        raise ValueError(f"{each * len(CAUSES)} stragglers in {groups} tensor-parallel groups: one a group at most")
    chosen = np.random.default_rng(seed + 1).permutation(groups)[: each * len(CAUSES)].tolist()
    found = []
    for number, group in enumerate(chosen):
        cause = CAUSES[number % len(CAUSES)]
        share = {"data": 0.3, "host": 0.25}.get(cause, 0.0)
        file, line = {"data": ("train.py", LOADER_LINE), "host": ("train.py", PACK_LINE),
                      "work": ("model.py", work_line), "hardware": ("", 0)}[cause]  # fmt: skip
        found.append(
            Planted(rank=group * mesh.tensor + number % mesh.tensor, cause=cause, line=line,
                    file=f"{ROOT}/{file}" if file else "", excess_ns=round(share * step_ns),
                    factor=1.5 if cause == "hardware" else 1.0)
        )  # fmt: skip
    return sorted(found, key=lambda one: one.rank)


def write_ranks(
    folder: Path,
    ranks: int,
    *,
    source: Path = SOURCE,
    steps: int = 3,
    collectives: int = 16,
    each: int | None = None,
    seed: int = 0,
    processes: int = 1,
) -> Truth:
    """Writes `ranks` traces into a folder, and `FOLDER.truth.json` beside it.

    Args:
        ranks: a power of two.
        collectives: how many of the source's all-reduces a step has.
        each: stragglers of each cause; without it one for each 64 ranks, and 3 at most.

    Raises:
        ValueError: no power of two, or too many stragglers.
    """
    mesh, read = Mesh.of(ranks), read_source(source, collectives)
    program, model = make_program(read, 24)
    each = min(3, ranks // 64) if each is None else each
    plain = Simulation(program, Mesh(1, 1, 1), 1, [], seed).run()
    step_ns = round(plain.knots[0][-1, 0] - plain.knots[0][0, 0])
    kernels = sum(one.duration for one in program.devices if not one.group and not one.work)
    more = sum(one.duration for one in program.devices if one.work)
    stragglers = [
        msgspec.structs.replace(one, excess_ns=round({"hardware": kernels * (one.factor - 1), "work": more}[one.cause]))
        if one.cause in ("hardware", "work") else one
        for one in plant(mesh, each, seed, step_ns, program.work_line)
    ]  # fmt: skip
    hosts = np.random.default_rng(seed + 2).uniform(-1, 1, (2, (ranks + 7) // 8))
    hosts -= hosts[:, :1]
    truth = Truth(
        world_size=ranks, tensor=mesh.tensor, data=mesh.data, pipeline=mesh.pipeline, steps=steps,
        stragglers=stragglers,
        offset_ns=[round(3e6 * hosts[0, rank // 8]) for rank in range(ranks)],
        drift=[float(1e-5 * hosts[1, rank // 8]) for rank in range(ranks)],
        collectives=collectives * steps, transfer_ns=TRANSFER_NS,
    )  # fmt: skip
    simulation = Simulation(program, mesh, steps, stragglers, seed)
    moments = simulation.run()
    writer = Writer(read, program, model, mesh, steps)
    folder.mkdir(parents=True, exist_ok=True)
    job = _Job(writer, moments, simulation.cuts, truth, folder)
    if processes > 1:
        global _JOB  # a forked process takes it over
        _JOB = job
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
            list(pool.map(_write_one, range(ranks), chunksize=4))
    else:
        for rank in range(ranks):
            job.write(rank)
    truth_path(folder).write_bytes(msgspec.json.encode(truth))
    return truth


@dataclass
class _Job:
    writer: Writer
    moments: Moments
    cuts: Floats
    truth: Truth
    folder: Path

    def write(self, rank: int) -> None:
        text = self.writer.text(rank, self.moments, self.cuts, self.truth)
        packer = zlib.compressobj(1, wbits=31)
        name = f"node{rank // 8:03}_{PROCESS}.rank{rank}.{BASE_NS}.pt.trace.json.gz"
        (self.folder / name).write_bytes(packer.compress(text) + packer.flush())


_JOB: _Job | None = None


def _write_one(rank: int) -> None:
    assert _JOB is not None
    _JOB.write(rank)
