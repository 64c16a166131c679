"""What all commands have in common: few options, one word for one thing, and the same exit codes."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from deepscope.cli.entry import COMMANDS, deepscope
from deepscope.cli.options import Duration
from deepscope.cli.output import Bar, emit_pieces
from deepscope.errors import DeepScopeError
from warm_python import run_command

OPTIONS = 95
"""At most so many options of all commands."""


def options() -> Iterator[tuple[str, click.Option]]:
    """Each option with its command; one that two commands have counts twice, and a flag with its contrary once."""
    context = click.Context(deepscope)
    for name in ("", *COMMANDS):
        command = deepscope.get_command(context, name) if name else deepscope
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) and name else ()
        params = [parameter for one in (command, *inner) for parameter in one.params]
        yield from ((name, parameter) for parameter in params if isinstance(parameter, click.Option))


def words(command: str) -> set[str]:
    return {word for name, option in options() if name == command for word in option.opts}


def test_there_are_few_options() -> None:
    assert len(list(options())) <= OPTIONS


def test_an_option_has_one_word_and_a_letter_at_most() -> None:
    assert [option.opts for _, option in options() if sum(word.startswith("--") for word in option.opts) > 1] == []


@pytest.mark.parametrize("word", ["-n", "--time", "--warmup", "--topics", "--min-time", "--peaks", "--stage"])
def test_a_word_means_the_same_in_all_commands(word: str) -> None:
    found = [option for _, option in options() if word in option.opts]
    described = {(option.default, option.multiple, option.metavar, type(option.type).__name__) for option in found}
    assert len(described) == 1


@pytest.mark.parametrize("command", ["run", "attach", "report", "ranks", "export", "compare"])
def test_a_rank_is_chosen_by_one_word(command: str) -> None:
    assert "--rank" in words(command)
    assert "--ranks" not in words(command)


def test_times_are_of_one_type() -> None:
    typed = {name for _, option in options() for name in option.opts if isinstance(option.type, Duration)}
    assert typed == {"--time", "--after", "--min-time", "--budget"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("1.5m", 90), (" 2 h ", 7200), ("500ms", 0.5), ("100us", 1e-4), ("3 µs", 3e-6), ("7ns", 7e-9)],
)
def test_a_time_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["us", "-1ms", "1e3ms", "1 day", "", "nan s", "9" * 30 + "s", "1ms\x1b", "0"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time"):
        Duration().convert(text, None, None)


def test_help_has_every_command_once_by_its_purpose() -> None:
    text = CliRunner().invoke(deepscope, ["--help"], terminal_width=80).output
    assert [line for line in text.splitlines() if line.endswith(":")] == [
        "Options:", "Record:", "Look:", "Try:", "Compare:", "Serve:",
    ]  # fmt: skip
    listed = [line.split()[0] for line in text.partition("Record:")[2].splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(COMMANDS)


def deepscope_of(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deepscope", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "DEEPSCOPE_CACHE_DIR": str(folder / "cache"), "XDG_RUNTIME_DIR": str(folder)},
    )


NEARBY = {"reprot": "report", "atach": "attach", "comparre": "compare", "exports": "export", "rank": "ranks"}


@pytest.mark.parametrize("word", NEARBY)
def test_a_misspelt_command_is_answered_with_the_nearest(word: str) -> None:
    done = CliRunner().invoke(deepscope, [word])
    assert done.exit_code == 2
    assert f"no such command: {word}; did you mean {NEARBY[word]}?" in done.output


def test_a_word_that_is_near_to_none_is_answered_with_all() -> None:
    done = CliRunner().invoke(deepscope, ["xyzzy"])
    assert (done.exit_code, f"there are: {', '.join(COMMANDS)}" in done.output) == (2, True)


@pytest.mark.parametrize("command", sorted(COMMANDS.keys()))
def test_wrong_usage_exits_with_2(tmp_path: Path, command: str) -> None:
    done = run_command(command, "--no-such-option", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr


WRONG_FILES = {
    "run": ["absent.py"],
    "attach": ["4194399"],
    "report": ["absent.json"],
    "export": ["absent.json"],
    "model": ["absent.py:make"],
    "compare": ["absent.json", "absent.json"],
    "ranks": ["absent"],
    "view": ["absent", "--no-browser"],
    "mcp": ["absent"],
    "try": ["--yes", "--", "absent.py"],
    "verify": ["--yes", "--before", "absent.py", "--", "absent.py"],
    "demo": ["--folder", "taken.txt/here"],
    "skill": ["install", "taken.txt/absent"],
}


def test_every_command_that_reads_a_file_is_tried() -> None:
    assert COMMANDS.keys() - WRONG_FILES.keys() == {"lsp"}


@pytest.mark.parametrize("command", WRONG_FILES)
def test_a_wrong_file_exits_with_1_and_is_told_in_a_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "taken.txt").touch()
    done = deepscope_of(tmp_path, command, *WRONG_FILES[command])
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "absent" in done.stderr or command in {"attach", "demo"}
    assert done.stderr.startswith("deepscope: ")
    assert "Traceback" not in done.stderr


def test_a_bar_at_its_end_says_what_is_still_done() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    times, terminal = iter((0.0, 1.0, 1.01)), Terminal()
    with Bar(terminal, lambda: next(times)) as bar:
        assert bar is not None
        bar(98, 100)
        bar(100, 100)  # too soon after the last to be drawn, but for what follows
        assert [words.split(" ")[0] for words in terminal.getvalue().split("\r") if words] == ["reading", "analysing"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["try", "DS003", "train.py", "--epochs", "1"], "stand behind `--`: -- train.py"),
        (["verify", "--before", "old.py", "train.py"], "stand behind `--`: -- train.py"),
        (["verify", "--before=old.py", "train.py"], "stand behind `--`: -- train.py"),
        (["verify", "--before", "old.py"], "no program"),
    ],
)
def test_a_program_before_the_dashes_is_a_wrong_usage(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(deepscope, arguments)
    assert done.exit_code == 2
    assert told in done.output


def _full_disk() -> Iterator[str]:
    yield "half"
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", [None, "what was there"])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, before: str | None) -> None:
    target = tmp_path / "out.json"
    if before is not None:
        target.write_text(before)
    with pytest.raises(DeepScopeError, match=r"out\.json: cannot be written: No space left on device"):
        emit_pieces(_full_disk(), str(target))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (
        {} if before is None else {"out.json": before}
    )
