"""How a recording was configured: each option that a trace tells of, declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")


def option(default: Value, what: str, *, chooses_steps: bool = False, is_object: bool = False) -> Value:
    """Declares an option of a recording once: keywords, command line, pyproject.toml and docs/recording.md follow.

    Args:
        default: its value where it is not given.
        what: what it means, for the docs and the command's help.
        chooses_steps: whether it says which steps are recorded.
        is_object: whether it takes a Python object, which cannot be written as a word.
    """
    marks = {"what": what, "chooses_steps": chooses_steps, "is_object": is_object}
    declared: Any = field(default=default, metadata=marks)
    return declared  # type: ignore[no-any-return]  # as `field` itself is typed


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """How a recording was configured: the options that a trace tells, as the user gave them."""

    wait: int = option(1, "Steps of each cycle that pass unrecorded.", chooses_steps=True)
    warmup: float = option(
        1, "Steps of each cycle with torch's tracing switched on and nothing kept.", chooses_steps=True
    )
    active: int = option(3, "Steps of each cycle that are recorded; each cycle writes one file.", chooses_steps=True)
    repeat: int = option(1, "Cycles; 0 for as many as the run has.", chooses_steps=True)
    skip_first: int = option(0, "Steps before the first cycle.", chooses_steps=True)
    time: float | None = option(None, "Seconds to record, in place of counted steps.", chooses_steps=True)
    after: float = option(
        1.0, "With `time`, the seconds from the end of the first step to the window.", chooses_steps=True
    )
    lines: bool = option(True, "Record the executing lines of user code.")
    modules: bool = option(
        True, "Record the calls of `nn.Module`s, too; they hang on the same hooks, which go in for either."
    )
    compiled_lines: bool = option(
        True,
        "Have torch.compile keep the source lines that each kernel was made from, and record them; the lines "
        "at which CUDA graphs are captured, too.",
    )
    libraries: str = option("off", "`hot`: record the lines of installed packages that own the running modules, too.")
    source: str = option(
        "text", "What of the user's files goes into the trace: their `text`, a `hash` of it, or `none`."
    )
    record_shapes: bool = option(False, "Record the shapes of operators' arguments, from which FLOPs follow.")
    profile_memory: bool = option(False, "Record allocations and releases, and what held memory at the peak.")
    memory_snapshot: bool = option(
        False, "Have torch record the history of CUDA's memory in each window, and write its snapshot beside the trace."
    )
    max_slowdown: float | None = option(
        2.0, "A window may take this many times as long as without lines before detail is lowered; None for any."
    )
    max_entries: int = option(
        250_000,
        "Runs of lines that a window may record before detail is lowered; each costs 1.2 kB of memory at its end.",
    )
    with_stack: bool = option(False, "torch's own stacks; line scopes say more and cost less.")
    with_flops: bool = option(False, "Implies `record_shapes`: torch writes no FLOPs into a trace.")
    with_modules: bool = option(False, "torch's own names of TorchScript modules.")
    sync_events: bool = option(False, "CUDA's waits as events of their own: which stream waited for which event.")
    align_time: bool = option(False, "Times in the trace are Unix time by the host's clock, so that traces share it.")
    counters: str | bool = option(
        "window",
        "The machine's counters beside the trace: in windows alone (`window`), from start to stop (`run`), or `off`.",
    )
    counter_interval: float = option(
        0.1,
        "Seconds from sample to sample; more where samples are expensive, so that they take half a percent of a core.",
    )
    audit: bool = option(
        False, "Look at two steps behind the first window, operator by operator, for work that nobody needs."
    )
    all_threads: bool | None = option(
        None,
        "Record threads that the user starts, too; None for where torch can do so safely: from 2.14 on, and "
        "not with `profile_memory`.",
    )
