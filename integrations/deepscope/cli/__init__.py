"""The command line `deepscope`, one file a command; those that serve share one."""

from deepscope.cli.entry import main

__all__ = ["main"]
