"""What is shown of a workspace folder: the trace, what it is compared with, and the words for both."""

from __future__ import annotations

import os
from collections.abc import Iterator

from deepscope.errors import NoTraceError
from deepscope.quantities import spaced
from deepscope.records import Profile
from deepscope.report.counters import busy_ratio, busy_words
from deepscope.report.run_verdict import run_verdict
from deepscope.trace.kineto.remote import is_url
from deepscope.trials.remedies import remedies_of
from deepscope_lsp.answers import Comparison, Remark, ShownTrace, State, Status, TryCommand
from deepscope_lsp.engine.baseline import Baseline
from deepscope_lsp.engine.profile_index import mean_step_ns, program_of
from deepscope_lsp.engine.project import Project
from deepscope_lsp.engine.session import EditorSession
from deepscope_lsp.engine.source_files import to_path, to_uri
from deepscope_lsp.engine.wording import quantities

NO_LINES = "no line of user code is in this trace; record with deepscope, or with torch's with_stack=True"
SAME_CODE = "The same code ran: differences are noise, the machine, or settings and data."


def status_of(project: Project, state: State, message: str = "") -> Status:
    """The status of a project."""
    profile = project.index.profile if project.index is not None else None
    if state == "ready" and not message and profile is not None and not profile.lines:
        message = NO_LINES
    newer = project.newer
    if state == "ready" and not message and newer is not None:
        message = f"{newer.trace.path} is newer, and no code of it is here"
    baseline = project.baseline_index.profile if project.baseline_index is not None else None
    comparison = None
    if project.baseline is not None:
        compared = project.baseline.comparison
        step = compared.step if compared is not None and compared.has_intervals else None
        comparison = Comparison(
            is_chosen=project.is_baseline_chosen,
            steps_differ=None if step is None else not step.within_noise,
            is_same_code=project.baseline.is_same_code,
        )
    return Status(
        state=state,
        message=message,
        root=to_uri(project.root) if project.root else None,
        trace=_shown_trace(profile),
        baseline=_shown_trace(baseline),
        comparison=comparison,
        newer=_shown_trace(newer),
        step_time_words=_step_time_words(baseline, profile),
        remarks=[
            *([] if project.baseline is None else _comparison_remarks(project, project.baseline)),
            *([] if profile is None else _machine_remarks(profile, "machine busy", "")),
            *([] if baseline is None else _machine_remarks(baseline, "machine busy before", "In the baseline's run ")),
        ],
    )


def _shown_trace(profile: Profile | None) -> ShownTrace | None:
    if profile is None:
        return None
    info, totals = profile.trace, profile.totals
    first = min((step.number for step in profile.steps), default=None)
    last = max((step.number for step in profile.steps), default=None)
    return ShownTrace(
        path=info.path,
        paths=info.paths or [info.path],
        metric=profile.metric,
        device=info.device,
        recorded_at=info.recorded_at,
        program=program_of(profile),
        verdict=spaced(run_verdict(profile).sentence),
        step_ns=mean_step_ns(profile),
        stage=info.stage,
        also_recorded=info.also_recorded,
        ranks=info.ranks,
        steps=totals.steps,
        step=profile.step,
        first_step=first,
        last_step=last,
        steps_words=steps_words(totals.steps, first, last),
        commit=info.git_commit,
        dirty=info.git_dirty,
        device_ns=totals.device_ns,
        busy_ns=totals.busy_ns,
        idle_ns=totals.idle_ns,
        wall_ns=totals.wall_ns,
        warnings=info.warnings,
    )


def steps_words(count: int, first: int | None, last: int | None) -> str:
    """`steps 2–4`, `step 7`, or what the numbers allow."""  # noqa: RUF002
    if not count:
        return "the whole recording"
    if first is not None and last is not None:
        return f"step {first}" if first == last else f"steps {first}–{last}"  # noqa: RUF001
    return "1 step" if count == 1 else f"{count} steps"


def _step_time_words(old: Profile | None, new: Profile | None) -> str:
    before, now = (None if profile is None else mean_step_ns(profile) for profile in (old, new))
    if now is None:
        return ""
    if not before:
        return f"step {quantities.duration(now)}"
    return f"step {quantities.durations(before, now)}, {quantities.relative(before, now)}"


def _comparison_remarks(project: Project, baseline: Baseline) -> Iterator[Remark]:
    """What may explain a change besides the edit."""
    compared = baseline.comparison
    step = compared.step if compared is not None else None
    if step is not None and step.interval is None:
        yield Remark(words="noise unknown", detail="")
    elif step is not None and step.interval is not None and step.within_noise and step.before_ns:
        low_ns, high_ns = step.interval
        noise_ns = step.change_ns - low_ns if step.change_ns > 0 else high_ns - step.change_ns
        yield Remark(words=f"within noise (±{quantities.share(noise_ns / step.before_ns)})", detail="")
    if baseline.is_same_code:
        yield Remark(words="same code", detail=SAME_CODE)
    elif project.is_baseline_chosen and baseline.strangers_words:  # one that is not is of the same program
        detail = spaced(baseline.strangers_words)
        shared = baseline.shared_lines
        words = "shared code unknown" if shared is None else f"{quantities.share(shared)} of lines shared"
        yield Remark(words=words, detail=f"{detail[:1].upper()}{detail[1:]}.")


def _machine_remarks(profile: Profile, words: str, beginning: str) -> Iterator[Remark]:
    """What others on the machine took from a run."""
    if ratio := busy_ratio(profile.trace):
        detail = spaced(beginning + busy_words(profile.trace))
        yield Remark(words=f"{words} ({quantities.share(ratio)})", detail=f"{detail[:1].upper()}{detail[1:]}.")


def can_be_tried(session: EditorSession, project: Project, code: str) -> bool:
    """Whether a remedy of the finding can be applied from outside, to a program that is here."""
    return bool(remedies_of(code)) and _program(session, project) != []


def try_command(session: EditorSession, project: Project, code: str) -> TryCommand:
    """The command's words; the program's own arguments, which no trace tells, go behind them.

    Raises:
        NoTraceError: nothing is shown, no remedy of the finding can be applied, or the program is not here.
    """
    if not remedies_of(code):
        raise NoTraceError(
            f"{code}: none of its remedies can be applied from outside; change the code, then `deepscope verify`"
        )
    program = _program(session, project)
    if project.index is None or not program:
        raise NoTraceError("the program that was recorded is not in this workspace, or the trace does not tell it")
    path = project.index.profile.trace.path
    trace = [] if is_url(path) or not os.path.isfile(path) else ["--trace", path]  # noqa: PTH113
    return TryCommand(arguments=["try", code, *trace, "--", *program], folder=project.root, program=program[-1])


def _program(session: EditorSession, project: Project) -> list[str]:
    """What runs the recorded program: its file, or `-m` and its name; nothing where neither is here."""
    if project.index is None:
        return []
    trace = project.index.profile.trace
    here = session.file_here(project, f"{trace.project_root}/{trace.program}") if trace.program else None
    path = to_path(here.uri) if here is not None else None
    if path and os.path.isfile(path):  # noqa: PTH113
        return [path]
    return ["-m", trace.program_module] if trace.program_module else []
