"""Stragglers of devices, in built traces: at the end of a step each rank waits in an all-reduce for the last one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.findings import RULES
from deepscope.ranks.rank_summary import RankSummary, summary_of
from deepscope.ranks.ranks_report import RanksReport
from deepscope.ranks.side_by_side import side_by_side
from deepscope.ranks.straggler_finding import CODE, TITLE, straggler_findings
from deepscope.records import Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

US = 1_000
STEPS, SEND = 6, 200 * US
FILE = "/home/ada/project/train.py"


@dataclass(frozen=True)
class Kernel:
    """Launched by a line of this number."""

    name: str
    line: int
    us: int
    grid: int = 100


@dataclass(frozen=True)
class Rank:
    """What a rank does in its steps, before it comes to the all-reduce."""

    kernels: Sequence[Kernel] = tuple(Kernel(f"kernel_{n}", 10 + n // 3, 100 + 40 * n) for n in range(9))
    launch_us: int = 4
    python_us: int = 20
    """Between operators, at line 9."""
    data_us: int = 50
    """At line 8, in the loader."""
    when: Sequence[int] = field(default_factory=lambda: range(STEPS))
    """Steps in which it is so; in the others it is as a usual rank."""

    def in_step(self, step: int) -> Rank:
        return self if step in self.when else Rank()


USUAL = Rank()


def slower(times: float) -> Rank:
    """Each kernel takes longer."""
    return Rank(kernels=[replace(kernel, us=round(kernel.us * times)) for kernel in USUAL.kernels])


def build(
    ranks: Sequence[Rank], folder: Path, noise: Callable[[int, int, int], float] = lambda *_: 1.0
) -> list[Profile]:
    """The profiles of ranks that meet at the end of each step; `noise` is a factor by rank, step and kernel."""
    builders = [
        TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": len(ranks)})
        for rank in range(len(ranks))
    ]
    began = 1_000_000
    for step in range(STEPS):
        ends = []
        for rank, (builder, doing) in enumerate(zip(builders, ranks, strict=True)):
            one = doing.in_step(step)
            at = began
            builder.line(FILE, 8, "main", at, one.data_us * US)
            builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, one.data_us * US)
            at += one.data_us * US
            builder.line(FILE, 9, "main", at, one.python_us * US)
            at += one.python_us * US
            free = at
            for number, kernel in enumerate(one.kernels):
                length = round(kernel.us * US * noise(rank, step, number))
                builder.line(FILE, kernel.line, "main", at, one.launch_us * US)
                builder.op(f"aten::op_{kernel.name}", at, one.launch_us * US)
                start = max(free, at + one.launch_us * US)
                builder.kernel(
                    kernel.name, at + 1, start, length, launch_duration=one.launch_us * US - 2, grid=[kernel.grid, 1, 1]
                )
                free = start + length
                at += one.launch_us * US
            ends.append((at, free))
        last = max(free for _, free in ends) + SEND
        for builder, (at, free) in zip(builders, ends, strict=True):
            builder.line(FILE, 30, "main", at, 5 * US)
            builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 1, free, last - free, launch_duration=2 * US)
            builder.line(FILE, 31, "main", at + 5 * US, last + US - at - 5 * US)
            builder.runtime("cudaDeviceSynchronize", at + 6 * US, last + US - at - 7 * US)
            builder.step(step, began, last + US - began)
        began = last + US
    return [
        build_profile(read_trace(builder.write(folder / f"rank{rank}.json"))) for rank, builder in enumerate(builders)
    ]


def summaries_of(profiles: Sequence[Profile]) -> list[RankSummary]:
    return [msgspec.structs.replace(summary_of(one), rank=rank) for rank, one in enumerate(profiles)]


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., RanksReport]:
    return lambda *ranks, **options: side_by_side(summaries_of(build(ranks, tmp_path, **options)))


def test_equal_ranks_have_no_straggler(report: Callable[..., RanksReport]) -> None:
    found = report(*[USUAL] * 4)
    assert (found.stragglers, found.findings, found.varying) == ([], [], [])


def test_kernels_that_take_longer_everywhere_are_slow_hardware(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, slower(1.31), USUAL, USUAL).stragglers
    assert (one.rank, one.cause) == (1, "hardware")
    (figure,) = one.figures
    assert figure.value == pytest.approx(1.31, abs=0.005)
    assert figure.typical == 1
    assert "the same kernels take 1.31 times as long" in one.message
    assert one.excess_ns == pytest.approx(0.31 * sum(kernel.us for kernel in USUAL.kernels) * US, rel=0.01)
    assert one.hardware_ns == pytest.approx(one.excess_ns, rel=0.01)
    assert one.line == 12  # the longest kernels' line
    assert one.line_ns == pytest.approx(0.31 * sum(kernel.us for kernel in USUAL.kernels[6:]) * US, rel=0.01)


def test_one_kernel_that_takes_longer_is_work(report: Callable[..., RanksReport]) -> None:
    kernels = [*USUAL.kernels[:8], replace(USUAL.kernels[8], us=1500)]
    (one,) = report(USUAL, USUAL, Rank(kernels=kernels)).stragglers
    assert (one.rank, one.cause, one.line) == (2, "work", 12)
    assert one.line_ns == one.excess_ns == (1500 - USUAL.kernels[8].us) * US


def test_more_kernels_are_work_at_the_line_that_launches_them(report: Callable[..., RanksReport]) -> None:
    more = [Kernel(f"extra_{n}", 20, 150) for n in range(4)]
    (one,) = report(USUAL, Rank(kernels=[*USUAL.kernels, *more]), USUAL, USUAL).stragglers
    assert (one.rank, one.cause, one.line) == (1, "work", 20)
    assert "it runs 13 kernels a step, the others 9" in one.message
    assert one.line_ns == pytest.approx(600 * US, rel=0.02)


def test_a_larger_batch_is_work_though_all_kernels_take_longer(report: Callable[..., RanksReport]) -> None:
    larger = Rank(kernels=[replace(kernel, us=2 * kernel.us, grid=2 * kernel.grid) for kernel in USUAL.kernels])
    (one,) = report(USUAL, USUAL, USUAL, larger).stragglers
    assert (one.rank, one.cause) == (3, "work")
    assert "its kernels have more to do" in one.message


def test_waiting_for_data_is_data(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, Rank(data_us=1000), USUAL, USUAL).stragglers
    assert (one.rank, one.cause, one.line) == (1, "data", 8)
    assert one.line_ns == one.excess_ns == 950 * US


def test_python_between_operators_is_the_host(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, Rank(python_us=800), USUAL, USUAL).stragglers
    assert (one.rank, one.cause, one.line) == (1, "host", 9)
    assert one.line_ns == one.excess_ns == 780 * US


def test_slow_launches_are_the_host(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, Rank(launch_us=900), USUAL, USUAL).stragglers
    assert (one.rank, one.cause) == (1, "host")


def test_a_rank_that_is_late_in_some_steps_is_named_with_their_number(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, replace(slower(2.0), when=(1, 4)), USUAL, USUAL).stragglers
    assert (one.rank, one.late_steps, one.steps) == (1, 2, 6)
    assert one.excess_ns == pytest.approx(sum(kernel.us for kernel in USUAL.kernels) * US / 3, rel=0.01)


def test_two_stragglers_have_their_own_causes(report: Callable[..., RanksReport]) -> None:
    found = report(USUAL, slower(1.5), USUAL, Rank(data_us=1500), USUAL).stragglers
    assert [(one.rank, one.cause) for one in found] == [(3, "data"), (1, "hardware")]


def test_stages_of_a_pipeline_that_have_other_layers_are_no_slow_hardware(report: Callable[..., RanksReport]) -> None:
    stages = [Rank(kernels=[Kernel(f"stage{stage}_{n}", 10 + stage, us) for n in range(6)])
              for stage, us in enumerate((200, 220, 190, 420))]  # fmt: skip
    (one,) = report(*stages).stragglers
    assert (one.rank, one.cause) == (3, "work")


def test_a_slow_rank_among_stages_is_compared_with_those_that_run_the_same(report: Callable[..., RanksReport]) -> None:
    stages = [[Kernel(f"stage{stage}_{n}", 10 + stage, 200) for n in range(6)] for stage in range(2)]
    slow = [replace(kernel, us=280) for kernel in stages[1]]
    found = report(*(Rank(kernels=one) for one in (stages[0], stages[0], stages[1], slow, stages[1]))).stragglers
    assert [(one.rank, one.cause) for one in found] == [(3, "hardware")]


def test_noise_of_kernels_names_nobody_and_a_slow_device_is_named_among_it(report: Callable[..., RanksReport]) -> None:
    def noise(rank: int, step: int, kernel: int) -> float:
        return 1 + 0.03 * (hash((rank, step, kernel)) % 2001 - 1000) / 1000

    assert report(*[USUAL] * 6, noise=noise).stragglers == []
    (one,) = report(*[USUAL] * 5, slower(1.2), noise=noise).stragglers
    assert (one.rank, one.cause) == (5, "hardware")
    assert one.figures[0].value == pytest.approx(1.2, abs=0.03)


def test_few_more_kernels_do_not_explain_much_more_python(report: Callable[..., RanksReport]) -> None:
    """A line that launches a tenth more, and whose Python is many times as long, has not more work."""
    many = [Kernel(f"small_{n}", 9, 1) for n in range(10)]
    slow = Rank(kernels=[*USUAL.kernels, *many, Kernel("small_10", 9, 1)], python_us=2_000)
    usual = Rank(kernels=[*USUAL.kernels, *many])
    (one,) = report(usual, slow, usual, usual).stragglers
    assert (one.rank, one.cause, one.line) == (1, "host", 9)
    assert one.work_ns < 0.1 * one.host_ns


def test_what_is_saved_is_the_distance_to_the_next_slowest_rank(tmp_path: Path) -> None:
    summaries = summaries_of(build([USUAL, slower(1.5), slower(1.2), USUAL, USUAL], tmp_path))
    found = side_by_side(summaries)
    whole = sum(kernel.us for kernel in USUAL.kernels) * US
    assert [one.rank for one in found.stragglers] == [1, 2]
    (finding,) = found.findings  # both are late by one line
    assert finding.evidence["straggling_ranks"] == "1-2"
    elsewhere = msgspec.structs.replace(found.stragglers[1], file="/scratch/train.py")
    roots = [msgspec.structs.replace(one, project_root="/scratch" if one.rank == 2 else FILE.rpartition("/")[0])
             for one in summaries]  # fmt: skip
    assert len(straggler_findings([found.stragglers[0], elsewhere], roots)) == 1
    alone = straggler_findings(found.stragglers[:1], summaries)[0]
    assert alone.saving_ns == pytest.approx(0.3 * whole * STEPS * 5, rel=0.02)
    assert finding.saving_ns == pytest.approx(0.5 * whole * STEPS * 5, rel=0.02)
    assert finding.severity == "warning"


def test_a_trace_that_is_cut_before_its_device_makes_nobody_late(tmp_path: Path) -> None:
    ranks = [USUAL, USUAL, slower(1.5), USUAL, USUAL, replace(USUAL, kernels=[], python_us=9_000)]
    summaries = summaries_of(build(ranks, tmp_path))
    assert [one.rank for one in side_by_side(summaries).stragglers] == [5, 2]
    summaries[5] = msgspec.structs.replace(summaries[5], metric="cpu")
    assert [one.rank for one in side_by_side(summaries).stragglers] == [2]


def test_a_single_rank_has_no_straggler(report: Callable[..., RanksReport]) -> None:
    assert report(USUAL).stragglers == []


def test_what_varies_is_told_with_its_ranks(report: Callable[..., RanksReport]) -> None:
    kernels = [replace(USUAL.kernels[0], us=300), *USUAL.kernels[1:], Kernel("extra", 20, 70)]
    found = [row for row in report(USUAL, USUAL, Rank(kernels=kernels)).varying if row.kind == "kernel"]
    assert [msgspec.structs.astuple(row)[1:] for row in found] == [
        ("kernel_0", 100 * US, 100 * US, 0, 300 * US, 2, False),
        ("extra", 0, 0, 0, 70 * US, 2, True),
    ]  # fmt: skip


def test_a_thousand_ranks_are_compared_in_seconds(tmp_path: Path) -> None:
    usual, late = summaries_of(build([USUAL, slower(1.4)], tmp_path))
    ranks = [msgspec.structs.replace(late if rank == 700 else usual, rank=rank) for rank in range(1024)]
    (one,) = side_by_side(ranks).stragglers
    assert (one.rank, one.cause) == (700, "hardware")


@pytest.mark.parametrize("seed", range(3))
def test_a_line_that_one_of_two_ranks_runs_alone_is_named_though_the_other_rank_is_noisy(
    report: Callable[..., RanksReport], seed: int
) -> None:
    chance = random.Random(seed)
    late = Rank(kernels=[*USUAL.kernels, Kernel("extra", 40, 350)])
    found = report(late, USUAL, noise=lambda rank, *_: 1 + rank * chance.uniform(-0.6, 0.6)).stragglers
    assert (0, 40) in [(one.rank, one.line) for one in found]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("of_noisy", "of_late"), [(50, 40), (12, 11)], ids=["lines of their own", "lines of all ranks"]
)
def test_a_line_that_is_longer_in_each_step_is_named_though_another_rank_is_late_by_more(
    report: Callable[..., RanksReport], of_noisy: int, of_late: int, seed: int
) -> None:
    chance = random.Random(seed)
    factors = [[chance.uniform(0.5, 1.5) for _ in range(STEPS)] for _ in range(4)]
    noisy = Rank(kernels=[*USUAL.kernels, Kernel("most_times", of_noisy, 6_000)], when=range(STEPS - 1))
    late = Rank(kernels=[*USUAL.kernels, Kernel("always", of_late, 700)])

    def noise(rank: int, step: int, kernel: int) -> float:  # none on the late rank, and none at line 11
        return 1.0 if rank == 2 or kernel // 3 == 1 else factors[rank][step]

    found = report(USUAL, noisy, late, USUAL, noise=noise)
    assert [(one.rank, one.line) for one in found.stragglers] == [(1, of_noisy), (2, of_late)]


def test_a_line_is_told_over_the_same_steps_as_its_rank(report: Callable[..., RanksReport]) -> None:
    (one,) = report(USUAL, Rank(kernels=[*USUAL.kernels, Kernel("extra", 20, 5_000)], when=[2]), USUAL).stragglers
    assert one.late_steps == 1
    assert "came 5.00ms later than the others in a single one of 6 steps" in one.message
    assert "train.py:20 has 5.00ms of it" in one.message


def test_the_finding_has_a_page_and_its_row_in_the_index(repository: Path) -> None:
    assert CODE not in {rule.code for rule in RULES}
    page = (repository / "docs" / "findings" / f"{CODE}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {CODE}: {TITLE}\n")
    sections = {"## What happens", "## Evidence", "## Saving", "## Remedy", "## When it does not fire"}
    assert sections <= set(re.findall(r"^## .*", page, re.MULTILINE))
    index = (repository / "docs" / "findings" / "README.md").read_text(encoding="utf-8")
    assert f"| [{CODE}]({CODE}.md) | {TITLE} |" in index
