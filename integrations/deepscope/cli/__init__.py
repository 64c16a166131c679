"""The command line `deepscope`, one file a command; those that serve share one, and so do try and verify."""

from deepscope.cli.entry import main

__all__ = ["main"]
