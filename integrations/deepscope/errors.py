"""Every error that DeepScope raises, in one tree.

A message says what was found, where, and what to do. The core raises; the edges decide: the command line prints one
line and exits with `exit_code`, the recorder warns once and lets training go on. Where a message names an option, each
edge has its own word for it (`rank=3`, `--rank 3`, `deepscope.rank 3`): `message` takes it.

An error is rebuilt from its `args`, so it keeps its type from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from deepscope.printable import without_secrets

__all__ = [
    "ControlError",
    "DeepScopeError",
    "FactoryError",
    "IncomparableError",
    "MissingExtraError",
    "Naming",
    "NestedProfileError",
    "NoTraceError",
    "NotATraceError",
    "OptionError",
    "ProgramError",
    "RecorderError",
    "SettingsError",
    "TargetError",
    "TraceError",
    "TruncatedTraceError",
    "VariableError",
    "in_python",
    "in_words",
    "remake",
]

Naming: TypeAlias = Callable[[str, object], str]
"""How an edge names an option that has a value: from its name in Python and the value to the words for both."""


def in_python(option: str, value: object) -> str:
    """As a keyword argument: `rank=3`."""
    return f"{option}={value!r}"


def in_words(option: str, value: object) -> str:
    """For a sentence that several edges show, each with its own word for the option: "the option `rank` (3)"."""
    return f"the option `{option}`" if value is True else f"the option `{option}` ({value})"


class DeepScopeError(Exception):
    """Base of all errors that DeepScope raises on purpose; printed without a traceback."""

    exit_code = 1

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_secrets(one) if isinstance(one, str) else one for one in arguments))

    def message(self, naming: Naming = in_python) -> str:  # noqa: ARG002  most name no option
        """The message, with options as `naming` has them."""
        return super().__str__()

    def __str__(self) -> str:
        return self.message()


class TraceError(DeepScopeError):
    """A trace could not be read."""


class NoTraceError(TraceError):
    """A path does not exist, or a folder holds no trace."""


class NotATraceError(TraceError):
    """A file is there, but it is empty or no Kineto or Chrome trace."""


class TruncatedTraceError(TraceError):
    """A trace ends early (cut JSON or gzip); where some events before the end are whole, `partial` reads those."""

    def __init__(self, problem: str, whole_events: int) -> None:
        super().__init__(problem, whole_events)
        self.problem = str(self.args[0])
        self.whole_events = whole_events

    def message(self, naming: Naming = in_python) -> str:
        """What is broken, and how to read the rest."""
        if not self.whole_events:
            return f"{self.problem}; nothing in it can be read; record it again"
        return f"{self.problem}; read the {self.whole_events:,} events before it with {naming('partial', True)}"


class IncomparableError(DeepScopeError):
    """Times of a device and times of the CPU alone: their sums and differences mean nothing."""


class OptionError(DeepScopeError, ValueError):
    """An option has a value that cannot be used; the message names the option and the values it takes."""

    exit_code = 2

    def __init__(self, option: str, value: object, problem: str) -> None:
        super().__init__(option, value, problem)
        self.option = option
        """Its name in Python."""
        self.value = value
        self.problem = problem

    def message(self, naming: Naming = in_python) -> str:
        """The option with its value, and what is wrong with it."""
        return f"{naming(self.option, self.value)}: {self.problem}"


class VariableError(DeepScopeError, ValueError):
    """An environment variable has a value that cannot be used."""


class SettingsError(DeepScopeError):
    """The table of a project's pyproject.toml cannot be used; the message names the file and the key."""


class ProgramError(DeepScopeError):
    """The program to be recorded is missing, or cannot be read."""


class FactoryError(DeepScopeError):
    """The function that makes a model is missing, fails, or makes something else; or the model cannot be called."""


class TargetError(FactoryError):
    """What is to name such a function has another form."""

    exit_code = 2


class RecorderError(DeepScopeError, RuntimeError):
    """The recorder was used in a way that it does not support."""


class NestedProfileError(RecorderError):
    """A recording was started inside another one of the same process."""


class ControlError(DeepScopeError):
    """A running job cannot be found, asked or understood."""


class MissingExtraError(DeepScopeError, ImportError):
    """An optional dependency is absent; the message names the pip command that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def message(self, naming: Naming = in_python) -> str:  # noqa: ARG002
        """What is lacking, and the command that brings it."""
        return f"{self.package} is not installed; run: pip install 'deepscope[{self.extra}]'"


def remake(kind: str, arguments: Sequence[object]) -> DeepScopeError:
    """The error that another process raised, by class and `args`; a `TraceError` if there is no such class."""
    found = globals().get(kind)
    try:
        if isinstance(found, type) and issubclass(found, DeepScopeError):
            return found(*arguments)
    except TypeError:  # of another version of this package
        pass
    return TraceError(": ".join(map(str, arguments)))
