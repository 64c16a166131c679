"""`%%deepscope` records the training steps of a cell, `%deepscope` a single line; what they cost is shown below."""

from __future__ import annotations

import ast
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from html import escape
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import click
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import publish_display_data

from deepscope.capture.notices import unannounced
from deepscope.capture.process_hooks.open_recorders import fail
from deepscope.capture.program import Recorded, record_steps, record_whole
from deepscope.cli.recording_options import asked_options, given_options, run_options
from deepscope.printable import printable
from deepscope.quantities import share_text, time_text
from deepscope.records import Costs, Line, Profile
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import short_path, short_place
from deepscope.report.call_paths import flame_tree
from deepscope.report.event_names import measured_words, place_name
from deepscope.report.findings import findings_entries
from deepscope.report.run_verdict import run_verdict
from deepscope.report.text_report import text_report
from deepscope.store import load_profile

_OTHER_LINES = 5
"""Lines of other files that are shown."""
_LEAST_OTHER = 0.02
_FRAMES = 300
_ROW = 18
"""Height of a frame, in pixels."""
_LEAST_WIDTH = 0.1
"""Percent; narrower frames are left out."""
_LABELLED = 4
"""Percent; narrower frames show no name."""

_STYLE = """<style>
.deepscope{font:13px system-ui,sans-serif;max-width:1000px}
.deepscope table{border-collapse:collapse;margin:6px 0}
.deepscope td{border:0;padding:0 8px;text-align:left;white-space:pre;font:12px ui-monospace,monospace}
.deepscope td.n{text-align:right;opacity:.75}
.deepscope td.b i{display:block;height:9px;background:#e8833a}
.deepscope dt{font-weight:600;margin-top:4px}.deepscope dd{margin:0 0 0 16px}
.deepscope div.f{position:relative}
.deepscope div.f span{position:absolute;box-sizing:border-box;height:17px;overflow:hidden;white-space:nowrap;color:#222;
font:11px system-ui,sans-serif;padding:1px 3px;border:1px solid #fff8;border-radius:2px}
</style>"""


def _cell_page(profile: Profile, file: str, text: str) -> str:
    """HTML without scripts, which also a notebook that is not trusted shows.

    Args:
        profile: of the cell's recording.
        file: the cell's name in it.
        text: the whole cell.
    """
    costs = Costs.of(profile)
    parts = [
        f"<p><b>{escape(_of_cell(run_verdict(profile).sentence, profile, file))}</b></p>",
        _table(_cell_rows(profile, costs, file, text)),
        _table(_other_rows(profile, costs, file)),
        f"<dl>{''.join(_advice(profile, file))}</dl>",
        _flame(profile, file),
    ]
    return f'<div class="deepscope">{_STYLE}{"".join(parts)}</div>'


def _table(rows: Iterator[str]) -> str:
    content = "".join(rows)
    return f"<table><tbody>{content}</tbody></table>" if content else ""


def _cell_rows(profile: Profile, costs: Costs, file: str, text: str) -> Iterator[str]:
    lines: dict[int, list[Line]] = {}
    for one in profile.lines:
        if one.file == file:
            lines.setdefault(one.line, []).append(one)
    for number, source in enumerate(text.rstrip("\n").split("\n"), 1):
        yield _row(str(number), lines.get(number, []), costs, source)


def _other_rows(profile: Profile, costs: Costs, file: str) -> Iterator[str]:
    """The lines of other cells and files that cost most."""
    others = [one for one in costs.ranked(profile.lines) if one.file != file and costs.share(one) >= _LEAST_OTHER]
    for one in others[:_OTHER_LINES]:
        place = short_place(one.file, one.line, profile.trace.project_root)
        yield _row(place, [one], costs, (one.text or one.function).strip())


def _row(place: str, lines: list[Line], costs: Costs, source: str) -> str:
    share = costs.share(*lines) if lines else 0.0
    time = time_text(costs.per_step_ns(*lines)) if lines else ""
    bar = f'<i style="width:{120 * min(share, 1):.0f}px"></i>'
    figure = share_text(share, 1) if lines else ""
    cells = (f'<td class="n">{escape(one)}</td>' for one in (printable(place), figure, time))
    return f'<tr>{"".join(cells)}<td class="b" style="width:120px">{bar}</td><td>{escape(printable(source))}</td></tr>'


def _of_cell(words: str, profile: Profile, file: str) -> str:
    """The cell's lines by their numbers alone."""
    return words.replace(f"{printable(short_path(file, profile.trace.project_root))}:", "line ")


def _advice(profile: Profile, file: str) -> Iterator[str]:
    for title, given in findings_entries(profile):
        words = _of_cell(given, profile, file)
        yield f"<dt>{escape(title)}</dt><dd>{escape(words)}</dd>" if title else f"<dd>{escape(words)}</dd>"


class _Box(NamedTuple):
    """A frame of the graph; `left` and `width` in percent of it."""

    node: int
    left: float
    width: float
    depth: int


def _flame(profile: Profile, file: str) -> str:
    tree = flame_tree([(profile, lambda frame: frame)], metric="device", depth="operator", upwards=False, limit=_FRAMES)
    times = tree.totals(0)
    boxes = _boxes(times, tree.parents)
    if not boxes:
        return ""
    whole_ns = sum(own for own, *_ in tree.own)
    spans = [
        _span(_of_cell(_name(tree.frames[box.node], profile), profile, file), times[box.node], whole_ns, box)
        for box in boxes
        if box.width >= _LEAST_WIDTH
    ]
    height = _ROW * (1 + max(box.depth for box in boxes))
    summary = f"<summary>Call paths by {measured_words(profile)}</summary>"
    return f'<details>{summary}<div class="f" style="height:{height}px">{"".join(spans)}</div></details>'


def _boxes(times: Sequence[int], parents: Sequence[int]) -> list[_Box]:
    """A box a node, as wide as its share of all: children stand below their parent, from its left edge on."""
    whole = sum(time for time, parent in zip(times, parents, strict=True) if parent < 0)
    found: list[_Box] = []
    next_left: dict[int, float] = {}  # by parent, where its next child begins
    for node, (time, parent) in enumerate(zip(times, parents, strict=True) if whole else ()):
        above = found[parent] if parent >= 0 else _Box(-1, 0.0, 100.0, -1)
        left, width = next_left.get(parent, above.left), 100 * time / whole
        next_left[parent] = left + width
        found.append(_Box(node, left, width, above.depth + 1))
    return found


def _span(name: str, time_ns: int, whole_ns: int, box: _Box) -> str:
    title = f"{name}: {time_text(time_ns)} ({share_text(time_ns, whole_ns)})"
    place = f"left:{box.left:.3f}%;width:{box.width:.3f}%;top:{box.depth * _ROW}px"
    label = escape(name) if box.width >= _LABELLED else ""
    return f'<span title="{escape(title)}" style="{place};background:{_colour(name)}">{label}</span>'


def _colour(name: str) -> str:
    """The same name has the same colour."""
    return f"hsl({18 + sum(name.encode()) % 36} 85% 72%)"


def _name(frame: object, profile: Profile) -> str:
    assert isinstance(frame, int)
    if frame < 0:
        return NO_LINE
    if frame < len(profile.lines):
        line = profile.lines[frame]
        return printable(f"{line.function} {short_place(line.file, line.line, profile.trace.project_root)}")
    place = profile.places[frame - len(profile.lines)]
    return printable(place_name(place.kind, place.name))


_APART = "# recorded by DeepScope"


class MagicCell:
    """Python that stands in a cell behind a magic: the lines below it, or the rest of its line.

    IPython compiles what stands below `%%time` as a text of its own, whose lines are in no cell. Here they are compiled
    under the cell's name with their numbers in it, and the cell's whole text is what a traceback and a trace show.

    Raises:
        SyntaxError: it is no Python.
    """

    def __init__(self, shell: InteractiveShell, body: str, text: str) -> None:
        self._shell = shell
        self.text = text
        """The whole cell."""
        number = getattr(shell.compile, "_filename_map", {}).get(self.caller, shell.execution_count)
        self.file: str = shell.compile.cache(text, number, raw_code=f"{text}\n{_APART}")
        """What Python calls it: not as the call of the magic, which stands in the same cell and is no user's work."""
        python = shell.transform_cell(body)  # without empty lines at its begin
        tree = shell.transform_ast(shell.compile.ast_parse(python, self.file))
        ast.increment_lineno(tree, text.rstrip().count("\n") - python.rstrip().count("\n"))
        self._tree: ast.Module = tree
        last = tree.body[-1] if tree.body else None
        self._last = last.value if isinstance(last, ast.Expr) else None
        if self._last is not None:
            tree.body.pop()

    def run(self) -> Any:
        """Runs it in the user's namespace; returns the value of an expression that ends it, as a cell has one."""
        __tracebackhide__ = True
        names = self._shell.user_global_ns, self._shell.user_ns
        exec(self._compiled(self._tree, "exec"), *names)  # noqa: S102
        if self._last is None:
            return None
        return eval(self._compiled(ast.Expression(self._last), "eval"), *names)  # noqa: S307

    @property
    def caller(self) -> str:
        """What Python calls the text that calls the magic."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals is not self._shell.user_global_ns:
            frame = frame.f_back
        return "" if frame is None else frame.f_code.co_filename

    def _compiled(self, tree: ast.Module | ast.Expression, mode: str) -> CodeType:
        code: CodeType = compile(tree, self.file, mode, self._shell.compile.flags, dont_inherit=True)
        return code


_NO_STEPS = (
    "DeepScope recorded nothing: too few training steps were made in this cell. `%%deepscope --whole` records all."
)
_record_steps = partial(record_steps, may_record_itself=False)
Record = Callable[..., AbstractContextManager[Recorded]]


@click.command("%%deepscope")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Where the trace is kept; else nowhere."
)
@click.option("--whole", is_flag=True, help="Record all of the cell instead: for code without an optimizer.")
@asked_options
@run_options
def _options(**_: Any) -> None:
    """Record training steps of the cell, and show below it what its lines cost. `%deepscope CODE` records a line."""


@magics_class
class DeepScopeMagics(Magics):
    """The magics of `%load_ext deepscope`."""

    @line_cell_magic
    def deepscope(self, line: str, cell: str | None = None) -> Any:
        """Record a cell's training steps, or behind `%deepscope` a line; `%%deepscope --help` has the options."""
        __tracebackhide__ = True
        if cell is None:
            return self._recorded(MagicCell(self._shell, line, line), record_whole, None, {})
        given = _parsed(line)
        if given is None:
            return None
        folder, record = given.pop("folder", None), record_whole if given.pop("whole") else _record_steps
        return self._recorded(MagicCell(self._shell, cell, self._text_of(line, cell)), record, folder, given)

    @property
    def _shell(self) -> InteractiveShell:
        assert isinstance(self.shell, InteractiveShell)
        return self.shell

    def _text_of(self, line: str, cell: str) -> str:
        """The cell as the user sees it."""
        history = self._shell.history_manager
        kept = history.input_hist_raw[-1] if history is not None else ""
        return kept if kept.rstrip().endswith(cell.rstrip()) else f"%%deepscope {line}\n{cell}"

    def _recorded(self, cell: MagicCell, record: Record, folder: Path | None, options: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        with ExitStack() as end:
            if folder is None:
                folder = Path(tempfile.mkdtemp(prefix="deepscope-"))
                end.callback(shutil.rmtree, folder, ignore_errors=True)
                end.enter_context(unannounced())
            with record(folder, exclude=[cell.caller], **options) as recorded:
                try:
                    value = cell.run()
                except BaseException as error:
                    recorded.is_complete = False
                    fail(error)
                    raise
            _show(cell, recorded)
        return value


def _parsed(line: str) -> dict[str, Any] | None:
    """The options as keywords of what records; None where help was asked for, and printed.

    Raises:
        UsageError: for wrong ones.
    """
    try:
        with _options.make_context("%%deepscope", shlex.split(line)) as context:
            return given_options(context.params)
    except click.exceptions.Exit:
        return None
    except (click.ClickException, ValueError) as error:
        words = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(f"%%deepscope: {words}") from None


def _show(cell: MagicCell, recorded: Recorded) -> None:
    if not recorded.traces:
        publish_display_data({"text/plain": _NO_STEPS})
        return
    profile = load_profile(recorded.traces[-1], cache=False)
    page = {"text/plain": text_report(profile, width=120), "text/html": _cell_page(profile, cell.file, cell.text)}
    publish_display_data(page)
