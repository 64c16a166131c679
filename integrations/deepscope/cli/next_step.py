"""The next step after a command, in a line: `next: deepscope report runs/exp1 --line train.py:46`."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.records import Finding, Profile
from deepscope.records.source_files import base_name, short_path, short_place
from deepscope.report.line_report import find_line
from deepscope.report.run_verdict import run_verdict
from deepscope.report.tables import table
from deepscope.store.trace_identity import parse_name
from deepscope.trace.format.header import NO_ARGUMENTS
from deepscope.trace.format.run_account import snapshot_path
from deepscope.trace.kineto.remote import is_url

if TYPE_CHECKING:
    from deepscope.comparison import Comparison
    from deepscope.ranks.ranks_report import RanksReport
    from deepscope.records.findings import Try
    from deepscope.trials.runs import Command


def with_next(text: str, step: str) -> str:
    """A text of the terminal that ends with the next step, where there is one."""
    return f"{text}\nnext: {printable(step)}\n" if step else text


def after_report(profile: Profile, by: str) -> str:
    """Opening the line of the finding that saves most, else the verdict's, else the one that costs most.

    Where evaluations take most of the run, and one was recorded, that comes first; below memory it is torch's snapshot
    beside the trace.
    """
    if by == "memory" and (snapshot := _snapshot(profile)):
        return f"deepscope report {snapshot}"
    if run_verdict(profile).cause == "evaluation" and (folder := _folder_of_evaluation(profile)):
        return f"deepscope report {folder} --stage validate"
    finding = _weighty_finding(profile)
    if finding is not None and not _line_word(profile, finding.file, finding.line):
        return _change(profile, [finding.code])  # a line that no recorded step ran: there is nothing to open
    if word := line_to_open(profile):
        return f"deepscope report {_path(profile)} --line {quote(word)}"
    has_kernels = bool(profile.kernels) and by != "kernel"
    return f"deepscope report {_path(profile)} --by kernel" if has_kernels else ""


def line_to_open(profile: Profile) -> str:
    """What `--line` finds the line by that comes first, by its finding, the verdict or its cost; "" without lines."""
    finding = _weighty_finding(profile)
    for one in (finding, run_verdict(profile), *table("line").rows(profile, limit=1)):
        if one is not None and (word := _line_word(profile, one.file, one.line)):
            return word
    return ""


def _weighty_finding(profile: Profile) -> Finding | None:
    return next((one for one in profile.findings if one.severity != "hint"), None)


def after_line(profile: Profile, file: str, line: int) -> str:
    """Trying what answers the line's findings from outside; else changing it and proving the change."""
    return _change(profile, [one.code for one in profile.findings if (one.file, one.line) == (file, line)])


def _change(profile: Profile, codes: Sequence[str]) -> str:
    from deepscope.trials.remedies import remedies_of

    info = profile.trace
    if profile.serving:
        return "change the server, record it again, then: deepscope compare BEFORE AFTER"
    if info.world_size > 1:
        return "change the line, record again, then: deepscope compare BEFORE AFTER"
    program = _program(profile)
    if answered := [code for code in dict.fromkeys(codes) if remedies_of(code)]:
        return f"deepscope try {' '.join(answered)} -- {program}"
    return _proof("change the line", program, is_in_git=bool(info.git_commit))


def _proof(change: str, program: str, *, is_in_git: bool) -> str:
    """Making a change and proving it; a copy can take the place of a file, but not that of a module."""
    if is_in_git:
        return f"{change}, then: deepscope verify --before HEAD -- {program}"
    if program.startswith("-m "):
        return f"commit the program to git, {change}, then: deepscope verify --before HEAD -- {program}"
    return f"keep a copy of the program, {change}, then: deepscope verify --before COPY -- {program}"


def after_comparison(comparison: Comparison) -> str:
    """Opening the line that became slower by most."""
    word = slower_line(comparison)
    return f"deepscope report {_path(comparison.after[0])} --line {quote(word)}" if word else ""


def slower_line(comparison: Comparison) -> str:
    """What `--line` finds the line by that became slower by most, beyond noise; "" where none did."""
    for row in comparison.rows:
        place = row.place
        is_slower = row.change_ns > 0 and row.interval is not None and not row.within_noise and row.status != "gone"
        if is_slower and place and (word := _line_word(comparison.after[0], place.record.file, place.record.line)):
            return word
    return ""


def after_ranks(report: RanksReport, paths: Sequence[str]) -> str:
    """Looking at the rank that is late."""
    where = " ".join(quote(one) for one in paths) if len(paths) < 3 else "PATH"
    return f"deepscope ranks {where} --rank {report.stragglers[0].rank}" if report.stragglers else ""


def after_tries(rows: Sequence[Try], command: Command) -> str:
    """Writing what gains and proving it; else leaving the program as it is."""
    from deepscope.trials.scratch import is_in_git

    verdicts, words = {one.verdict for one in rows}, (command.target, *command.arguments)
    if "faster" in verdicts:
        program = f"{'-m ' if command.is_module else ''}{' '.join(map(quote, words))}"
        return _proof("write it", program, is_in_git=is_in_git(command.working))
    if "inconclusive" in verdicts:
        return "try again with a larger --budget, or when the machine has nothing else to do"
    return "leave the program as it is: nothing that was tried gains"


_AFTER_VERIFY = {
    "faster": "keep the change",
    "no gain": "take the change back: it gains nothing",
    "slower": "take the change back",
    "results differ": "take the change back, unless other results are wanted",
    "inconclusive": "verify again with a larger --budget, or when the machine has nothing else to do",
}


def after_verify(row: Try) -> str:
    """What to do with the change."""
    return _AFTER_VERIFY.get(row.verdict, "")


def _path(profile: Profile) -> str:
    """The trace, of several their folder, as a word of the shell."""
    info = profile.trace
    path = info.path
    if len(info.paths) > 1:
        path = path.removesuffix(base_name(path)).rstrip("/\\")
    return quote(short_path(path) or ".")


def _snapshot(profile: Profile) -> str:
    """Torch's memory snapshot beside the trace, as a word of the shell; "" for none, and of several ranks."""
    path = snapshot_path(Path(profile.trace.path))
    is_there = len(profile.trace.paths) < 2 and not is_url(profile.trace.path) and path.is_file()
    return quote(short_path(str(path))) if is_there else ""


def _folder_of_evaluation(profile: Profile) -> str:
    """Where a trace of the same process's evaluation lies beside this one, as a word of the shell; "" for none."""
    path = Path(profile.trace.path)
    worker, stage, _ = parse_name(path.name)
    beside = path.parent.glob(f"{escape(worker)}.validate.*") if stage != "validate" else ()
    if not any(parse_name(one.name)[0] == worker for one in beside):
        return ""
    return quote(short_path(str(path.parent)) or ".")


def _line_word(profile: Profile, file: str, line: int) -> str:
    """What `--line` finds this line by: `train.py:46`, longer where that means others, too; "" where nothing does."""
    from deepscope.report.line_tree import lines_of

    if not file:
        return ""
    lines = lines_of(profile)
    for word in (short_place(file, line, profile.trace.project_root), f"{file}:{line}"):
        try:
            found = lines[find_line(profile, word)]
        except OptionError:
            continue
        if (found.file, found.line) == (file, line):
            return word
    return ""


def _program(profile: Profile) -> str:
    """The recorded program's words; ARGUMENTS stands for its own, which no trace tells."""
    info = profile.trace
    if not info.program or info.program == "notebook":
        return "PROGRAM"
    path = f"{info.project_root}/{info.program}"
    if Path(path).is_file():
        words = quote(short_path(path))
    elif info.program_module:
        words = f"-m {info.program_module}"
    else:
        words = quote(info.program)
    return f"{words} ARGUMENTS" if info.arguments not in {"", NO_ARGUMENTS} else words
