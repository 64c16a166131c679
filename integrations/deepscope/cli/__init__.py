"""The command line `deepscope`, one file a command."""

from deepscope.cli.entry import main

__all__ = ["main"]
