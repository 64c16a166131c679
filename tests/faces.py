"""What each face says of the numbers that a user sees first, read from what it shows: texts, tables, hints."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec

from deepscope.dashboard.html_file import OneProfile, html_file
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Choice, Table
from deepscope.dashboard.pages.distributed import distributed
from deepscope.dashboard.pages.lines import line_list
from deepscope.dashboard.pages.operators import OperatorsAsked, operators
from deepscope.dashboard.pages.overview import overview
from deepscope.dashboard.pages.steps import steps
from deepscope.lightning.runs import summary
from deepscope.records import Profile
from deepscope.report.event_names import readable
from deepscope.report.json_csv import csv_report, json_report
from deepscope.report.operator_ranking import RankingQuery, ranking
from deepscope.report.text_report import text_report
from deepscope_lsp.engine.hot_lines import hot_lines
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.status import status_of
from deepscope_lsp.engine.wording.annotation import annotate
from deepscope_lsp.engine.wording.hover import HoverContext, line_hover

__all__ = ["NUMBERS", "Said", "differ", "every"]

NUMBERS = (
    "hottest line", "its share", "second line", "its cost a step", "step length", "steps",
    "device busy", "waiting a step", "first operator", "its time", "first rate", "recording", "verdict",
)  # fmt: skip
"""Times in nanoseconds, shares from 0 to 1, places as `file:line`."""

Said = dict[str, "str | float"]
"""A number is left out where a face does not show it."""

_UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
_SCALES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME = r"([\d.,]+(?:e[+-]\d+)?) ?(ns|µs|ms|s|min|h)\b"


def differ(one: str | float, other: str | float) -> bool:
    """Whether two faces contradict each other: texts in anything, numbers by more than three digits show."""
    if isinstance(one, str) or isinstance(other, str):
        return one != other
    if max(abs(one), abs(other)) <= 1:  # a share: of 10 % and more some faces show whole percents
        return abs(one - other) > 0.006
    return abs(one - other) > 0.006 * max(abs(one), abs(other))


def _time(text: str) -> float | None:
    found = re.search(_TIME, text)
    return None if found is None else float(found[1].replace(",", "")) * _UNITS[found[2]]


def _percent(text: str) -> float | None:
    found = re.search(r"(<?)([\d.]+) ?%", text)
    return None if found is None or found[1] else float(found[2]) / 100


def _count(text: str) -> float | None:
    found = re.search(r"^([\d.,]+) ?([KMGTP]?)(?:FLOP/s)?$", text)
    return None if found is None else float(found[1].replace(",", "")) * _SCALES[found[2]]


def _known(**said: str | float | None) -> Said:
    shown = {name: value for name, value in said.items() if value is not None and value != ""}
    return {name.replace("_", " "): value for name, value in shown.items()}


def _first(values: Iterable[float | None]) -> float | None:
    """Of the operators in their order, the first one that has a rate."""
    return next((value for value in values if value), None)


def _sentence(text: str) -> str:
    """A sentence without the spaces before units, and with its lines joined: faces set them each in their way."""
    return re.sub(rf"(?<=\d) (?=%|(?:{'|'.join(_UNITS)})\b)", "", re.sub(r"\s+", " ", text.strip()))


def _verdict(head: str) -> str | None:
    """Of a text in entries, each a title and its words, which go on in lines below."""
    found = re.match(r"verdict (.*(?:\n  .*)*)", head)
    return None if found is None else _sentence(found[1])


def _name(place: str) -> str:
    """A place without its folders, which faces shorten each in their way."""
    return re.sub(r".*[/\\…]", "", place)


def _grid(text: str) -> list[dict[str, str]]:
    """The first table of a text: cells stand below the titles that they touch."""
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if re.match(r"share\s|\s*share\s", line))
    spans = [(found.start(), found.end(), found[0]) for found in re.finditer(r"\S+(?: \S+)*", lines[at])]
    rows = []
    for line in lines[at + 1 :]:
        if not line.strip():
            break
        row: dict[str, str] = {}
        for cell in re.finditer(r"\S+(?: \S+)*", line):
            touched = [name for start, end, name in spans if cell.start() < end and cell.end() > start]
            if touched:
                row.setdefault(touched[0], cell[0])
        rows.append(row)
    return rows


def terminal(profile: Profile) -> Said:
    """`deepscope report`, and `--by operator`."""
    said: Said = {}
    text = text_report(profile, width=400, limit=0)
    head = text.partition("\n\n")[0]
    said |= _known(verdict=_verdict(head))
    if profile.lines:
        rows = [row for row in _grid(text) if not row["line"].startswith("(")]
        first = rows[0]
        said |= _known(
            hottest_line=_name(first["line"]),
            second_line=_name(rows[1]["line"]) if len(rows) > 1 else None,
            its_share=_percent(first.get("share", "")),
            its_cost_a_step=_time(first.get("/step") or first.get("cost", "")),
        )
    if found := re.search(r"(\d+) steps?\b.*? · " + _TIME + " a step", head):
        said |= _known(steps=float(found[1]), step_length=_time(found[2] + found[3]))
    if found := re.search(r"device busy ([\d.<]+%)", head):
        said |= _known(device_busy=_percent(found[1]))
    if found := re.search(r"recording itself took " + _TIME, text.replace("\n", " ")):
        said |= _known(recording=_time(found[1] + found[2]))
    rows = _grid(text_report(profile, by="operator", width=400, limit=0)) if profile.operators else []
    if rows:
        first = rows[0]
        said |= _known(
            first_operator=first["operator"],
            its_time=_time(first.get("self", "")),
            first_rate=_first(_count(row.get("FLOP/s", "")) for row in rows),
        )
    return said


def at_the_end(profile: Profile) -> Said:
    """The summary at the end of a run."""
    return _known(verdict=_verdict(summary(profile)))


def as_json(profile: Profile) -> Said:
    """`deepscope report --format json`."""
    found = json.loads(json_report(profile))
    rows, figures = found["lines"], found.get("figures", {})
    ranked = json.loads(json_report(profile, by="operator"))["operators"]
    said = _known(**{name: figures.get(key) for name, key in _FIGURES.items()})
    said |= _known(recording=found["totals"]["recording_ns"] or None, verdict=_sentence(found["verdict"]["sentence"]))
    if rows:
        said |= _known(
            hottest_line=_name(f"{rows[0]['file']}:{rows[0]['line']}"),
            second_line=_name(f"{rows[1]['file']}:{rows[1]['line']}") if len(rows) > 1 else None,
            its_share=rows[0].get("share"),
            its_cost_a_step=rows[0].get("cost_per_step_ns"),
        )
    if ranked:
        first = ranked[0]
        said |= _known(
            first_operator=first["label"],
            its_time=first["self_device_ns"],
            first_rate=_first(one.get("flops_per_s") for one in ranked),
        )
    return said


_FIGURES = {
    "step_length": "step_ns",
    "steps": "steps",
    "device_busy": "busy_share",
    "waiting_a_step": "waiting_per_step_ns",
}


def as_csv(profile: Profile) -> Said:
    """`deepscope report --format csv`."""
    rows = [row for row in csv.DictReader(io.StringIO(csv_report(profile))) if row["file"]]
    ranked = list(csv.DictReader(io.StringIO(csv_report(profile, by="operator"))))
    said: Said = {}
    if rows:
        said |= _known(
            hottest_line=_name(f"{rows[0]['file']}:{rows[0]['line']}"),
            second_line=_name(f"{rows[1]['file']}:{rows[1]['line']}") if len(rows) > 1 else None,
            its_share=float(rows[0].get("share") or 0) or None,
            its_cost_a_step=float(rows[0].get("cost_per_step_ns") or 0) or None,
        )
    if ranked:
        first = ranked[0]
        said |= _known(
            first_operator=first["label"],
            its_time=float(first["self_device_ns"]),
            first_rate=_first(float(one.get("flops_per_s") or 0) for one in ranked),
        )
    return said


def top(profile: Profile) -> Said:
    """`deepscope top`."""
    rows = ranking(profile, RankingQuery()).rows
    if not rows:
        return {}
    first = rows[0]
    return _known(
        first_operator=readable(first.name),
        its_time=first.self_device_ns,
        first_rate=_first(row.flops_per_s for row in rows),
    )


def _cells(table: Mapping[str, Any], row: int) -> dict[str, Any]:
    return dict(zip([one["key"] for one in table["columns"]], table["rows"][row], strict=True))


def _plain(answer: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(answer))


def _pages(first: Any, lines: Table | Any, ranked: Any, step_page: Any, side: Any) -> dict[str, Said]:
    said: dict[str, Said] = {name: {} for name in ("overview", "lines", "operators", "steps", "distributed")}
    figures = {one["label"]: one["value"] for one in first["figures"]}
    step_length = figures.get("time a step", figures.get("step"))
    said["overview"] = _known(
        step_length=step_length,
        steps=figures.get("steps"),
        device_busy=figures.get("device busy"),
        waiting_a_step=figures.get("waiting a step"),
    )
    said["overview"] |= _known(verdict=_sentence(first["sentence"]))
    hot = first["lines"]
    if hot:
        said["overview"] |= _known(
            hottest_line=_name(hot[0]["place"]),
            its_share=hot[0]["share"],
            second_line=_name(hot[1]["place"]) if len(hot) > 1 else None,
            its_cost_a_step=hot[0].get("costPerStepNs"),
        )
    rows = [_cells(lines["lines"], at) for at in range(len(lines["lines"]["rows"]))]
    rows = [row for row in rows if not row["place"].startswith("(")]
    if rows:
        said["lines"] = _known(
            hottest_line=_name(rows[0]["place"]),
            its_share=rows[0]["share"],
            second_line=_name(rows[1]["place"]) if len(rows) > 1 else None,
            its_cost_a_step=rows[0].get("per_step"),
        )
    if ranked["table"]["rows"]:
        row = _cells(ranked["table"], 0)
        said["operators"] = _known(
            first_operator=row["label"],
            its_time=row["self_device_ns"],
            first_rate=_first(
                _cells(ranked["table"], at).get("flops_per_s") for at in range(len(ranked["table"]["rows"]))
            ),
        )
    figures = {one["label"]: one["value"] for one in step_page["figures"]}
    said["steps"] = _known(step_length=figures.get("mean"), steps=figures.get("steps"))
    if side is not None and side["hasSteps"]:
        figures = {one["label"]: one["value"] for one in side["figures"]}
        said["distributed"] = _known(step_length=figures.get("step, slowest rank"))
    return said


def pages(profile: Profile) -> dict[str, Said]:
    """The dashboard's pages."""
    library: Library = OneProfile(profile)
    try:
        one_rank = profile.totals.ranks == 1
        return _pages(
            *(
                _plain(page)
                for page in (
                    overview(library, Choice()),
                    line_list(library, Choice()),
                    operators(library, OperatorsAsked()),
                    steps(library, Choice()),
                    distributed(library, Choice()) if one_rank else None,
                )
            )
        )
    finally:
        library.close()


def html(profile: Profile) -> dict[str, Said]:
    """The pages in one file."""
    found = re.search(r'id="answers">(.*?)</script>', html_file(profile), re.DOTALL)
    assert found is not None
    answers = json.loads(found[1])
    asked = ("overview?", "line_list?", "operators?by=name", "steps?", "distributed?")
    named = [answers.get(one) for one in asked]
    said = _pages(*(answers[one] if isinstance(one, str) else one for one in named))
    return {f"html {name}": one for name, one in said.items()}


def editor(profile: Profile) -> dict[str, Said]:
    """The language server's: hints, the hover of the hottest line, the view of hot lines, the status."""
    index = ProfileIndex(profile)
    said: dict[str, Said] = {name: {} for name in ("hints", "hover", "hot lines", "status")}
    noted = [
        (annotate(line, index.scales).label, line)
        for file in index.files.values()
        for line in file.lines.values()
        if line in profile.lines
    ]
    hints = sorted(
        (
            (percent, _time(label) or 0.0, f"{line.file}:{line.line}", line)
            for label, line in noted
            if not re.match(r"calls|waits|workers", label) and (percent := _percent(label)) is not None
        ),
        key=lambda one: (-one[0], -one[1]),
    )
    if hints:
        percent, time_ns, place, line = hints[0]
        said["hints"] = _known(hottest_line=_name(place), its_share=percent, its_cost_a_step=time_ns)
        text = line_hover(line, HoverContext(index, lambda _file, _line: None))
        if found := re.search(r"\| cost \| ([^|]*) \| ([\d.<]+ %)", text):
            said["hover"] = _known(
                hottest_line=_name(place), its_cost_a_step=_time(found[1]), its_share=_percent(found[2])
            )
        if found := re.search(r"waiting for the device \| ([^|]*)", text):
            said["hover"] |= _known(its_waiting_a_step=_time(found[1]))
    view = hot_lines(index, lambda _file: None, limit=1000)
    if view.lines:
        first = view.lines[0]
        said["hot lines"] = _known(
            hottest_line=_name(f"{first.file}:{first.line}"),
            second_line=_name(f"{view.lines[1].file}:{view.lines[1].line}") if len(view.lines) > 1 else None,
            its_share=first.share,
            its_cost_a_step=first.per_step_ns,
        )
    project: Any = SimpleNamespace(
        root="", index=index, newer=None, baseline_index=None, baseline=None, is_baseline_chosen=False
    )
    shown = status_of(project, "ready").trace
    if shown is not None:
        said["status"] = _known(
            step_length=shown.step_ns, steps=float(shown.steps) or None, verdict=_sentence(shown.verdict)
        )
    return said


def every(profile: Profile, detailed: Profile) -> Iterator[tuple[str, Said]]:
    """What each face says; `detailed` is the profile with its operators by shapes."""
    for name, one in {"terminal": terminal, "summary": at_the_end, "json": as_json, "csv": as_csv}.items():
        yield name, one(profile)
    yield "top", top(detailed)
    for several in (pages, html, editor):
        yield from several(profile).items()
