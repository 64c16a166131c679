"""deepscope try and deepscope verify: a program run unchanged and changed in turn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deepscope.cli.compare import SLOWER
from deepscope.cli.options import FOLDERS, Duration
from deepscope.cli.output import Function, emit, form_option, tell, terminal, with_options
from deepscope.errors import DeepScopeError, MissingExtraError

if TYPE_CHECKING:
    from deepscope.records.findings import Try
    from deepscope.store import Profile
    from deepscope.trials.runs import Command, ProgramRuns


class ProgramCommand(click.Command):
    """A command with its own words before `--` and a program behind it, which comes as `program`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """All before `--`; what stands behind is the program's. A program that stands before it is a wrong usage."""
        place = args.index("--") if "--" in args else len(args)
        for before, word in zip(["", *args], args[:place], strict=False):
            is_value = before.startswith("--") and "=" not in before
            if word.endswith(".py") and not word.startswith("-") and not is_value:
                raise click.UsageError(f"a program and its arguments stand behind `--`: -- {word}", ctx)
        rest = super().parse_args(ctx, args[:place])
        ctx.params["program"] = tuple(args[place + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """With the program."""
        return [*super().collect_usage_pieces(ctx), "-- PROGRAM [ARGUMENTS]..."]


def trial_options(*forms: str) -> Callable[[Function], Function]:
    """Adds `--steps --budget --yes --format`; the first form is the default."""
    longest = "The longest it may take."
    return with_options(
        click.option(
            "--steps", type=click.IntRange(3), metavar="N", help="Timed steps of each run.  [default: by their length]"
        ),
        click.option("--budget", type=Duration(), default="5m", show_default=True, metavar="TIME", help=longest),
        click.option("--yes", is_flag=True, help="Do not ask before the program runs."),
        form_option(*forms),
    )


def parsed_program(words: Sequence[str]) -> Command:
    """The program behind `--`.

    Raises:
        DeepScopeError: there is no such file.
        UsageError: no program is given.
    """
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch")
    from deepscope.trials.runs import Command

    if not words:
        raise click.UsageError("no program: it stands behind `--`, as in `-- train.py --epochs 1`")
    command = Command.parsed(words, working=Path.cwd())
    command.check()
    return command


def ask_consent(command: Command, budget_s: float, *, yes: bool) -> None:
    """Say what the program may still write, and go on if the user agrees."""
    from deepscope.trials.runs import may_write

    tell(f"{command.target} is run again and again, for {budget_s:.0f} s at most")
    for line in may_write(command):
        tell(line)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at: --yes agrees")
    click.confirm("Run it?", abort=True, err=True, default=True)


@contextmanager
def runs_of(command: Command, budget_s: float) -> Iterator[ProgramRuns]:
    """Runs within a budget that begins now; afterwards it says what they wrote elsewhere."""
    from deepscope.trials.runs import ProgramRuns

    runs = ProgramRuns(command, time.monotonic() + budget_s)
    try:
        yield runs
    finally:
        runs.close()
        for path in runs.written:
            tell(f"the program wrote {path}")


def trace_of(command: Command, path: str | None = None) -> Profile | None:
    """The profile of a trace that is named, else of the newest one in the usual folders if it is of the program.

    Raises:
        TraceError: the trace that is named cannot be read.
    """
    from deepscope.store import load_profile
    from deepscope.store.selection import newest_folder

    if path is not None:
        return load_profile(path)
    try:
        profile = load_profile(newest_folder(FOLDERS))
    except DeepScopeError:
        return None
    return profile if Path(profile.trace.program).name == Path(command.target).name else None


def keep_beside(profile: Profile | None, rows: Sequence[Try]) -> None:
    """Keep what was tried beside the trace, where there is one on this machine."""
    from deepscope.store.companion_files import keep_tries

    if profile is None or not Path(profile.trace.path).is_file():
        return
    try:
        keep_tries(Path(profile.trace.path), [one for one in rows if one.speedup is not None])
    except OSError as error:
        tell(f"what was tried is not kept beside the trace: {error.strerror or error}")


@click.command("try", cls=ProgramCommand)
@click.argument("findings", nargs=-1, metavar="[FINDING]...")
@click.option(
    "--all", "is_search", is_flag=True, help="Keep the best, try the rest on top, and measure the set as a whole."
)
@click.option(
    "--trace",
    metavar="PATH",
    help="Take the findings from it, and keep the results beside it.  [default: the newest, if of this program]",
)
@trial_options("text", "json")
def try_remedies(
    findings: Sequence[str],
    program: Sequence[str],
    *,
    is_search: bool,
    trace: str | None,
    steps: int | None,
    budget: float,
    yes: bool,
    form: str,
) -> None:
    """Run PROGRAM unchanged and with remedies applied from outside, in turn, and say what each gains.

    FINDING is a code of a finding (DS003) or the name of a remedy (loader-workers); without one, all that apply are
    tried. Your files are not changed. The program runs in a scratch folder, a number of times, each for some steps.
    docs/try.md lists the remedies and says when losses are identical.
    """
    words = _checked(findings)
    command = parsed_program(program)
    profile = trace_of(command, trace)
    from deepscope.cli.next_step import after_tries, with_next
    from deepscope.trials.remedy_search import Search, candidates, try_each
    from deepscope.trials.rendering import tries_json, tries_text
    from deepscope.trials.session import TrialSession

    found = [] if profile is None else [one.code for one in profile.findings]
    chosen, rows = candidates(words, found)
    ask_consent(command, budget, yes=yes)
    options: list[str] = []
    with runs_of(command, budget) as runs:
        if chosen:
            session = TrialSession(runs, tell, steps=steps)
            session.start()
            if is_search:
                search = Search(session, chosen)
                rows += search.rows()
                options = search.written
            else:
                rows += try_each(session, chosen)
    keep_beside(profile, rows)
    text = with_next(tries_text(rows, options=options, **terminal()), after_tries(rows, command))
    emit(tries_json(rows) if form == "json" else text)


def _checked(findings: Sequence[str]) -> list[str]:
    """Codes in capitals and names of remedies.

    Raises:
        UsageError: there is no such finding or remedy.
    """
    from deepscope.analysis.findings import RULES
    from deepscope.ranks.straggler_finding import CODE
    from deepscope.trials.remedies import REMEDIES

    known = {*(rule.code for rule in RULES), CODE, *REMEDIES}
    words = []
    for one in findings:
        word = one.upper() if one.upper() in known else one.lower()
        if word not in known:
            near = get_close_matches(word, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"remedies are: {', '.join(REMEDIES)}"
            raise click.UsageError(f"no such finding or remedy: {one}; {hint}")
        words.append(word)
    return words


FAILED = 1


@click.command(cls=ProgramCommand)
@click.option("--before", required=True, metavar="REV", help="A revision of git, or a file in the place of PROGRAM.")
@click.option("--after", default="", metavar="REV", help="The same.  [default: the folder as it is]")
@trial_options("text", "json", "markdown")
def verify(
    program: Sequence[str], *, before: str, after: str, steps: int | None, budget: float, yes: bool, form: str
) -> int:
    """Run PROGRAM before and after a change in turn; say what the change gains, and whether the losses are the same.

    Revisions are checked out in worktrees of their own, which are removed afterwards; files that git does not know are
    those of this folder. What was found is kept beside the newest trace, if it is of this program.

    The exit code is 0 for faster, no gain, or what this machine cannot tell; 3 for slower, or results that differ; 1
    where the program fails.
    """
    from deepscope.cli.next_step import after_verify, with_next
    from deepscope.trials.remedy_search import attempt
    from deepscope.trials.rendering import tries_json, tries_text, verified_markdown
    from deepscope.trials.scratch import repository_root
    from deepscope.trials.session import TrialSession, sides

    command = parsed_program(program)
    if (root := repository_root(command.working, (before, after))) is not None:
        command = replace(command, root=root.resolve())
    profile = trace_of(command)
    ask_consent(command, budget, yes=yes)
    with runs_of(command, budget) as runs, sides(runs, before, after) as (old, new):
        session = TrialSession(runs, tell, steps=steps, unchanged=old)
        session.start()
        row, _ = attempt(session, "", old, new, session.left_s)
    keep_beside(profile, [row])
    if form == "json":
        text = tries_json([row])
    elif form == "markdown":
        text = verified_markdown(row, " ".join(program), before, after)
    else:
        text = with_next(tries_text([row], **terminal()), after_verify(row))
    emit(text)
    return _exit_code(row)


def _exit_code(row: Try) -> int:
    if row.verdict == "failed":
        return FAILED
    return SLOWER if row.verdict in {"slower", "results differ"} else 0
