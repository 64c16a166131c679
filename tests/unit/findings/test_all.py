"""What holds for every finding."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import click
import msgspec
import pytest

import built_profiles
from deepscope.analysis.findings import RULES, collectives
from deepscope.cli.entry import LazyGroup
from deepscope.ranks.straggler_finding import straggler_findings
from deepscope.records import PartOf, Profile, Remedy, View
from deepscope.records.findings import severity_of
from deepscope.records.profile import add_findings
from deepscope.records.ranks import merge_profiles
from deepscope.report.findings import SHOWN, findings_entries, without_findings
from deepscope.report.text_report import text_report


def test_codes_are_in_order_and_each_has_a_page_that_bears_its_title(repository: Path):
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    index = (repository / "docs" / "findings" / "README.md").read_text(encoding="utf-8")
    for rule in RULES:
        page = (repository / "docs" / "findings" / f"{rule.code}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {rule.code}: {rule.title}\n")
        assert f"[{rule.code}]({rule.code}.md)" in index
        assert {"## What happens", "## Evidence", "## Saving", "## Remedy", "## When it does not fire"} <= set(
            re.findall(r"^## .*", page, re.MULTILINE)
        )


def test_about_is_said_of_the_rules_whose_savings_were_measured_and_were_about_as_promised(repository: Path):
    page = (repository / "docs" / "findings" / "README.md").read_text(encoding="utf-8")
    on_cpu, on_device = (
        {code: float(ratio) for code, ratio in re.findall(r"^\| (DS\d+) \|.* \| ([\d.]+) \|$", part, re.MULTILINE)}
        for part in page.split("## How true the savings are")[1].split("**On a device**")
    )
    assert len(on_cpu) > 15
    for where, ratios in (("cpu", on_cpu), ("device", on_device)):
        close = {code for code, ratio in ratios.items() if 0.7 <= ratio <= 1.4}
        assert {rule.code for rule in RULES if where in rule.measured_on} == close


@pytest.mark.parametrize(
    ("saving", "severity"), [(0, "hint"), (19, "hint"), (20, "info"), (99, "info"), (100, "warning")]
)
def test_the_severity_goes_by_the_share_of_the_wall_time(saving, severity):
    assert severity_of(saving, 1000) == severity


def test_each_command_that_advice_names_is_there_and_takes_its_options(repository: Path):
    """The commands in the texts of the rules, of findings of several ranks, and on the pages."""
    sources = [
        *(repository / "integrations/deepscope/analysis/findings").glob("*.py"),
        *(repository / "docs/findings").glob("*.md"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in [*sources, Path(inspect.getfile(straggler_findings))]]
    commands = {found for text in texts for found in re.findall(r"`deepscope ([a-z]+(?: [^`]*)?)`", text)}
    assert {"ranks FOLDER", "report --by operator"} <= commands
    for command in commands:
        name, *words = command.partition(" -- ")[0].split()  # a program stands behind it
        parameters = import_command(name).params
        options = {option for one in parameters for option in one.opts}
        assert {word for word in words if word.startswith("-")} <= options, command


def test_ranks_are_compared_by_the_command_for_ranks(repository: Path):
    """`report FOLDER` sums the ranks up."""
    page = (repository / "docs/findings/DS014.md").read_text(encoding="utf-8")
    assert "`deepscope ranks FOLDER` compares the ranks" in page
    assert "deepscope ranks FOLDER" in inspect.getsource(collectives)


def import_command(name: str) -> click.Command:
    command = LazyGroup().get_command(click.Context(LazyGroup()), name)
    assert command is not None, name
    return command


def test_ranks_findings_at_one_place_are_one():
    first, second = built_profiles.training().findings
    other = msgspec.structs.replace(
        first, saving_ns=1, evidence={**first.evidence, "waits_per_step": 9.5}, severity="info"
    )
    profiles = [built_profiles.training(), built_profiles.training()]
    profiles[0].findings, profiles[1].findings = [first, second], [other]
    merged = merge_profiles(profiles).findings
    assert [one.code for one in merged] == ["DS001", "DS018"]
    assert merged[0].saving_ns == first.saving_ns + 1
    assert merged[0].evidence["wait_ns"] == 2 * first.evidence["wait_ns"]
    assert merged[0].evidence["waits_per_step"] == first.evidence["waits_per_step"]
    assert merged[0].severity == "warning"
    assert merged[1] == second


def test_findings_come_back_from_the_cache_as_they_were():
    profile = built_profiles.training()
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(profile), type=Profile)
    assert decoded.findings == profile.findings
    assert decoded.findings[0].remedy.edits[0].new == ".detach()"


def test_the_report_shows_five_at_most_the_largest_saving_first():
    profile = built_profiles.training()
    many = [
        built_profiles.finding("DS001", f"number {n}", "/a.py", n, n * 10**6, {"wait_ns": n}, Remedy("Do it."))
        for n in range(1, 9)
    ]
    profile.findings = []
    add_findings(profile, many)
    entries = list(findings_entries(profile))
    assert [re.search(r"number (\d)", text)[1] for title, text in entries if title == "DS001"] == list("87654")
    assert entries[-1][0] == "more"
    assert entries[-1][1].startswith("5 of 8 findings")
    assert len(entries) == 2 * SHOWN + 1


def test_no_finding_is_told_from_nothing_to_change():
    profile = built_profiles.training()
    profile.findings = []
    assert without_findings(profile) == "Nothing was found that would pay to change."
    part = msgspec.structs.replace(
        profile, part_of=PartOf(view=View(phase="forward"), device_ns=1, self_cpu_ns=1, wall_ns=1)
    )
    one_step = msgspec.structs.replace(profile, totals=msgspec.structs.replace(profile.totals, steps=1))
    without_lines = msgspec.structs.replace(profile, lines=[])
    busy = msgspec.structs.replace(profile.lines[0], core_wait_ns=profile.totals.wall_ns // 2)
    slowed = msgspec.structs.replace(profile.lines[0], slowed=True, cost_ns=profile.totals.wall_ns // 2)
    for changed, reason in (
        (part, "part of the trace"),
        (one_step, "one step"),
        (without_lines, "without lines"),
        (msgspec.structs.replace(profile, lines=[busy, *profile.lines[1:]]), "other programs"),
        (msgspec.structs.replace(profile, lines=[slowed, *profile.lines[1:]]), f"{slowed.line}."),
    ):
        words = without_findings(changed)
        assert words.startswith("Cannot tell")
        assert reason in words


def test_hostile_names_in_findings_reach_the_terminal_as_visible_escapes():
    text = text_report(built_profiles.hostile(), width=120)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert json.dumps(text).isascii()
