"""`deepscope verify`: two revisions of a program in turn: is the newer one faster, and is it the same training?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from deepscope.cli.compare import SLOWER
from deepscope.cli.output import emit, terminal
from deepscope.cli.trials import (
    ProgramCommand,
    ask_consent,
    keep_beside,
    parsed_program,
    runs_of,
    tell,
    trace_of,
    trial_options,
)

if TYPE_CHECKING:
    from deepscope.records.tries import Try

FAILED = 1


@click.command(cls=ProgramCommand)
@click.option("--before", required=True, metavar="REV", help="A revision of git, or a file in the place of PROGRAM.")
@click.option("--after", default="", metavar="REV", help="The same.  [default: the folder as it is]")
@trial_options
def verify(
    program: Sequence[str],
    *,
    before: str,
    after: str,
    trace: str | None,
    steps: int | None,
    budget: float,
    yes: bool,
    form: str,
) -> int:
    """Run PROGRAM before and after a change in turn; say what the change gains, and whether the losses are the same.

    Revisions are checked out in worktrees of their own, which are removed afterwards; files that git does not know are
    those of this folder.

    The exit code is 0 for faster, no gain, or what this machine cannot tell; 3 for slower, or results that differ; 1
    where the program fails.
    """
    from deepscope.cli.next_step import after_verify, with_next
    from deepscope.trials.remedy_search import attempt
    from deepscope.trials.rendering import tries_json, tries_text
    from deepscope.trials.revisions import root_of, sides
    from deepscope.trials.session import Session

    command = parsed_program(program)
    if (root := root_of(command.working, (before, after))) is not None:
        command = replace(command, root=root.resolve())
    profile = trace_of(command, trace)
    ask_consent(command, yes=yes, what=f"{command.name} is run again and again, for {budget:.0f} s at most")
    with runs_of(command, budget) as runs, sides(runs, before, after) as (old, new):
        session = Session(runs, tell, steps=steps, unchanged=old)
        session.start()
        row, _ = attempt(session, "", old, new, session.left_s)
    keep_beside(profile, [row])
    text = with_next(tries_text([row], **terminal(None)), after_verify(row))
    emit(tries_json([row]) if form == "json" else text, None)
    return _exit_code(row)


def _exit_code(row: Try) -> int:
    if row.verdict == "failed":
        return FAILED
    return SLOWER if row.verdict in {"slower", "results differ"} else 0
