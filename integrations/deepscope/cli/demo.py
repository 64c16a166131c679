"""`deepscope demo`: trains a small model with `Trainer(profiler="deep")` and prints its hot lines."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import click

from deepscope.cli.output import writing
from deepscope.errors import DeepScopeError, MissingExtraError
from deepscope.whole_files import whole_file

PROGRAM = "train_transformer.py"


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("deepscope_demo"),
    show_default=True,
    help="Where the program is copied to and its trace is written.",
)
@click.option("--steps", type=click.IntRange(1), default=20, show_default=True, help="Training steps.")
def demo(folder: Path, steps: int) -> None:
    """Train a small transformer with Trainer(profiler="deep") and print the lines that cost the time.

    The program learns from the sources of Python's own standard library. Two mistakes are planted in it; the report
    names their lines. It is copied to FOLDER, so that you can read, change and run it again.
    """
    if importlib.util.find_spec("lightning") is None:  # which brings torch
        raise MissingExtraError("lightning", "lightning")
    with writing(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        program = copy_program(folder)
    traces = folder / "deepscope_logs"
    before = set(traces.glob("*"))
    click.echo(f"Training {program} ({steps} steps) with profiler='deep' …", err=True)
    # Its own process: the program is run just as a user runs it.
    run = subprocess.run([sys.executable, program.name, "--steps", str(steps)], cwd=folder, check=False)  # noqa: S603
    if run.returncode:
        raise DeepScopeError(f"{program}: ended with exit code {run.returncode}; its own messages stand above")
    if not set(traces.glob("*")) - before:
        raise DeepScopeError(f"{program}: trained, but no trace was written to {traces}")
    click.echo()
    report = subprocess.run([sys.executable, "-m", "deepscope", "report", str(traces)], check=False)  # noqa: S603
    sys.exit(report.returncode)


def copy_program(folder: Path) -> Path:
    """Copies the example into `folder`; a copy that the user has changed is left as it is."""
    target = folder / PROGRAM
    if not target.exists():
        source = resources.files("deepscope.examples") / PROGRAM
        with resources.as_file(source) as file, whole_file(target) as part:
            shutil.copyfile(file, part)
    return target
