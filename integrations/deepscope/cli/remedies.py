"""`deepscope try`: remedies applied to a program from outside, and what each gains."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click

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


@click.command("try", cls=ProgramCommand)
@click.argument("findings", nargs=-1, metavar="[FINDING]...")
@click.option(
    "--all", "is_search", is_flag=True, help="Keep the best, try the rest on top, and measure the set as a whole."
)
@trial_options
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
    from deepscope.trials.session import Session

    found = [] if profile is None else [one.code for one in sorted(profile.findings, key=lambda one: -one.saving_ns)]
    chosen, rows = candidates(words, found)
    ask_consent(command, yes=yes, what=f"{command.name} is run again and again, for {budget:.0f} s at most")
    options: list[str] = []
    with runs_of(command, budget) as runs:
        if chosen:
            session = Session(runs, tell, steps=steps)
            session.start()
            if is_search:
                search = Search(session, chosen)
                rows += search.rows()
                options = search.written
            else:
                rows += try_each(session, chosen)
    keep_beside(profile, rows)
    text = with_next(tries_text(rows, options=options, **terminal(None)), after_tries(rows, command))
    emit(tries_json(rows) if form == "json" else text, None)


def _checked(findings: Sequence[str]) -> list[str]:
    """Codes in capitals and names of remedies.

    Raises:
        UsageError: there is no such finding or remedy.
    """
    from deepscope.analysis.findings import RULES
    from deepscope.ranks.finding import CODE
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
