"""What every page needs: which runs there are, and what is chosen of one."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timezone

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, Fact, PageAnswer, Question, in_page_words, title_of, word
from deepscope.errors import NoTraceError
from deepscope.printable import without_secrets
from deepscope.quantities import ranges
from deepscope.records import Profile
from deepscope.store.runs import FoundRun
from deepscope.trace.format.header import own_version


class Run(PageAnswer):
    """A run that can be chosen."""

    id: str
    title: str
    name: str
    """Its folder, as seen from what is shown; "" where it lies there itself."""
    folder: str
    recorded_at: str
    """ISO 8601 in UTC."""
    ranks: list[int]
    """That its traces name; empty for a single process."""
    stages: list[str]
    """The one first that is shown when none is chosen."""
    windows: list[int]
    """Of that stage. `id`, `~` and the number of one is a run's word for that window alone, in place of the newest."""
    traces: int
    size_bytes: int
    """Of its traces."""
    problem: str
    """Why it cannot be shown; "" where nothing is known against it."""


class Runs(PageAnswer):
    """The runs that there are, the newest first."""

    runs: list[Run]
    version: str
    """Of DeepScope."""


def runs(library: Library, question: Question) -> Runs:
    """Which runs can be chosen."""
    del question
    return Runs(runs=[_run(library, one) for one in library.runs()], version=own_version())


class News(PageAnswer):
    """What a page asks now and then: it changes when there is something new."""

    server: str
    """Another one after each start of the server."""
    runs: str
    """Another one when runs or traces came, went or were written again."""


_SERVER = secrets.token_hex(6)


def news(library: Library, question: Question) -> News:
    """Whether there are other runs than before."""
    del question
    try:
        found = [(one.id, [trace.file for trace in one.traces], library.problem(one)) for one in library.runs()]
    except NoTraceError:
        found = []
    return News(server=_SERVER, runs=hashlib.blake2b(repr(found).encode("utf-8", "replace"), digest_size=9).hexdigest())


def _run(library: Library, found: FoundRun) -> Run:
    newest = library.newest(found)
    folder, name = newest.file.folder, newest.file.name
    return Run(
        id=found.id,
        title=word(next((one.identity.program for one in found.traces if one.identity.program), "") or name),
        name=word(without_secrets(library.folder_below(found))),
        folder=word(without_secrets(folder)),
        recorded_at=datetime.fromtimestamp(newest.time_ns / 1e9, timezone.utc).isoformat(timespec="seconds"),
        ranks=found.ranks,
        stages=found.stages,
        windows=found.windows,
        traces=len(found.traces),
        size_bytes=sum(one.file.size_bytes for one in found.traces),
        problem=word(library.problem(found) or ("no whole trace" if all(one.is_lost for one in found.traces) else "")),
    )


class Header(PageAnswer):
    """What is shown, in the words that stand above every page."""

    run: str
    """`Run.id`."""
    title: str
    is_device: bool
    """Whether devices worked; else times of work are operators' own times on the CPU."""
    device: str
    stage: str
    rank: int | None
    """The chosen one; None for all of them merged."""
    ranks: list[int]
    """In this profile."""
    step: int | None
    steps: list[int]
    """That can be chosen."""
    facts: list[Fact]
    """Where this was recorded."""
    notes: list[str]
    """What a reader should know before the numbers: warnings, what is missing."""
    has_lines: bool
    has_ranks: bool
    """Whether the run has several ranks, whichever of them is chosen, collectives, or tables of an Ascend cluster."""
    has_modules: bool


def header(library: Library, question: Choice) -> Header:
    """What is shown."""
    profile = library.profile(question)
    info = profile.trace
    found = library.run(question)
    whole = profile
    if question.step is not None:
        whole = library.profile(Choice(run=question.run, rank=question.rank, stage=question.stage))
    return Header(
        run=found.id,
        title=title_of(profile),
        is_device=profile.metric == "device",
        device=word(info.device or ("CPU" if profile.metric == "cpu_self" else "unnamed device")),
        stage=word(info.stage),
        rank=question.rank,
        ranks=info.ranks,
        step=profile.step,
        steps=[step.number for step in whole.steps],
        facts=_facts(profile),
        notes=[*map(_sentence, library.skipped(question)), *_notes(profile)],
        has_lines=bool(profile.lines),
        has_ranks=len(found.ranks) > 1 or found.has_tables or info.world_size > 1 or bool(profile.collectives),
        has_modules=bool(profile.modules),
    )


def _sentence(words: str) -> str:
    return in_page_words(f"{words[:1].upper()}{words[1:]}")[:1000]


def _facts(profile: Profile) -> list[Fact]:
    info = profile.trace
    found = {
        "Trace": info.path if len(info.paths) < 2 else f"{info.path} and {len(info.paths) - 1} more",
        "Recorded": info.recorded_at,
        "Host": info.hostname,
        "Device": f"{info.device_count} x {info.device}" if info.device_count > 1 else info.device,
        "Ranks": f"{ranges(info.ranks)} of {info.world_size}" if info.world_size > 1 and info.ranks else "",
        "Stage": info.stage,
        "Also recorded": ", ".join(info.also_recorded),
        "Python": info.python,
        "torch": info.torch,
        "Lightning": info.lightning,
        "DeepScope": info.deepscope,
        "Commit": f"{info.git_commit[:12]}{' and changes' if info.git_dirty else ''}",
        "Lines from": {
            "scopes": "DeepScope's scopes",
            "call_stack": "call stacks",
            "frames": "torch's frames",
            "none": "",
        }[info.line_source],
    }
    return [Fact(label=label, value=word(value)) for label, value in found.items() if value]


def _notes(profile: Profile) -> list[str]:
    found = [in_page_words(warning)[:1000] for warning in profile.trace.warnings]
    if profile.metric != "device":
        found.insert(0, "No device worked in this trace: times of work are operators' own times on the CPU.")
    if profile.trace.truncated:
        found.insert(0, "The trace ends early; what was whole has been read.")
    if not profile.lines:
        found.insert(0, "The trace names no lines of code: operators and kernels tell most.")
    return found
