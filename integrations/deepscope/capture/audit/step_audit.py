"""Two steps that are looked at behind a window: the second one tells what becomes of the first one's results."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer

from deepscope.capture import dynamo, torch_compat
from deepscope.capture.audit.call_paths import FoundPlace
from deepscope.capture.audit.cheaper_operators import cheaper_operators
from deepscope.capture.audit.constants import same_work
from deepscope.capture.audit.copies import needless_copies
from deepscope.capture.audit.embeddings import padded_work, table_gradients
from deepscope.capture.audit.gradients import kept_graphs, unused_gradients, unused_graphs
from deepscope.capture.audit.hooks import AuditMode, foreign_extensions, is_another_active
from deepscope.capture.audit.large_intermediates import broadcasts
from deepscope.capture.audit.repeated_work import joined_chains, prefix_work, repeated_work
from deepscope.capture.audit.row_reads import partly_read, partly_used_samples
from deepscope.capture.audit.sample_work import sample_work
from deepscope.capture.audit.sliced_calls import alike_modules, sliced_calls
from deepscope.capture.audit.step_work import StepWork
from deepscope.capture.audit.unused_results import double_work, read_numbers, unused_derivatives, unused_results
from deepscope.capture.audit.watch import Watch
from deepscope.capture.audit.written_out import written_out
from deepscope.capture.lines import UserCode
from deepscope.capture.notices import error_words
from deepscope.capture.process_hooks import optimizer_steps
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.capture.process_hooks.signals import comes_from_handler, held_back
from deepscope.capture.step_timer import AwaitedSteps
from deepscope.trace.format.audit import MOST_ROWS, AuditAccount

STEPS = 2
LONGEST_S = 600.0
"""A trace is not written later than that for the sake of steps behind its window."""
_ENDED = "the run ended before its step was over"
_COMPILED = (
    "torch.compile is in use, and a function that is first called while operators are looked at would never be compiled"
)
_CAPTURED = "a CUDA graph is in use, which hides its operators"
_OTHER_MODE = "another dispatch mode is active around the training loop"
_OTHER_THREAD = "the steps moved to another thread"
_PAUSED = "an evaluation or a checkpoint came between its steps"
_MOST_ATTEMPTS = 3


class Audited(NamedTuple):
    """What an audit found; `places` are those of the account, with the paths of their files."""

    account: AuditAccount
    places: list[FoundPlace]


class StepAudit:
    """Looks at the steps from `begin` on; `step` is told as each one ends.

    `audited` waits for it on the thread that writes the window's trace. Nothing that goes wrong reaches the run.
    """

    def __init__(self, code: UserCode) -> None:
        self._code = code
        self._result = Audited(AuditAccount(left_out=_ENDED), [])
        self._awaited = AwaitedSteps()
        self._watch: Watch | None = None
        self._mode: AuditMode | None = None
        self._thread = 0
        self._attempts = 0
        self._stop_listening: Callable[[], None] = lambda: None
        self._stop_seeing: Callable[[], None] = lambda: None

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to be done with steps."""
        return self._awaited.is_over and self._mode is None

    @property
    def has_begun(self) -> bool:
        """Whether steps were looked at, or never will be."""
        return self._watch is not None or self._awaited.is_over

    def begin(self) -> None:
        """The first step to be looked at begins on this thread."""
        if self._awaited.is_over or self._watch is not None:
            return
        reason = _reason_against()
        if reason:
            self._end(reason)
            return
        self._thread = threading.get_ident()
        self._attempts += 1
        watch = self._watch = Watch(self._code)
        self._stop_listening = optimizer_steps.listen(self._stepped)
        stop_loading = torch_compat.watch_batches(self._loaded)

        def stop_seeing() -> None:
            watch.unseen_uses.end()
            stop_loading()

        self._stop_seeing = stop_seeing
        watch.unseen_uses.begin()
        self._mode = AuditMode(watch.note, self._failed)
        self._mode.__enter__()

    def step(self) -> None:
        """A step has ended."""
        watch = self._watch
        if watch is None:
            return
        if threading.get_ident() != self._thread:
            self.stop(_OTHER_THREAD)
            return
        watch.step += 1
        if watch.step >= STEPS or self._awaited.is_over:
            self._leave()
            self._conclude(watch)

    def pause(self) -> None:
        """What follows is part of no step: the next one that begins is the first to be looked at."""
        if self._attempts >= _MOST_ATTEMPTS or threading.get_ident() != self._thread:
            self.stop(_PAUSED)
        elif self._mode is not None:
            self._leave()
            self._watch = None

    def stop(self, reason: str = _ENDED) -> None:
        """No step follows, or somebody waits for the trace; what is not known by now is left out."""
        if self._mode is not None:
            if threading.get_ident() == self._thread:
                self._leave()
            else:
                self._mode.mute()
                self._stop_seeing()
        self._end(reason)

    def audited(self) -> Audited:
        """What was found; waits for the steps, and not beyond the end of their thread, which itself does not wait."""
        if self._awaited.is_training_thread:
            self.stop()
        self._awaited.wait(LONGEST_S)
        return self._result

    def _leave(self) -> None:
        """Take all off this thread."""
        mode, self._mode = self._mode, None
        with held_back():
            if mode is not None:
                mode.leave()
            self._stop_listening()
            self._stop_seeing()

    def _end(self, left_out: str = "", result: Audited | None = None) -> None:
        self._watch = None
        if not self._awaited.is_over:
            self._result = result or Audited(AuditAccount(left_out=left_out), [])
            self._awaited.end()

    def _failed(self, error: Exception) -> None:
        """Noting failed; the mode is left as the step ends."""
        if not self._awaited.is_over:
            self._result = Audited(AuditAccount(left_out=error_words(error)), [])
            self._awaited.end()

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._watch is not None and not self._awaited.is_over:
            self._watch.step_optimizer(optimizer)

    def _loaded(self, iterator: Any, batch: Any) -> None:
        watch = self._watch
        if watch is not None and threading.get_ident() == self._thread:
            with torch_compat.without_modes(), suppress(Exception):
                watch.samples.load(iterator, batch)

    def _conclude(self, watch: Watch) -> None:
        if self._awaited.is_over:
            self._watch = None
            return
        try:
            self._end(result=_audited(watch))
        except Exception as error:
            if comes_from_handler(error):
                raise
            self._end(error_words(error))


def _audited(watch: Watch) -> Audited:
    modules, optimizers = live_objects([nn.Module, Optimizer])
    extensions = foreign_extensions()
    shows_reads = not extensions
    gradients = watch.gradients.all
    work = StepWork(
        watch.flow,
        watch.graph,
        watch.paths.paths,
        given=(number for one in gradients for number in one.operations),
        unread_is_used=not shows_reads,
    )
    watch.gradients.end(optimizers)
    repeats = watch.repeats.all() - watch.class_masks.members(work)
    constants, chains = watch.constants.same(), joined_chains(work)
    partly = watch.row_reads.partly_read() if shows_reads else {}
    choices = (
        watch.diagonals.choices,
        watch.normalisations.choices,
        watch.cheaper.choices,
        watch.class_masks.choices,
        written_out,
        watch.repeated_rows.choices,
    )
    account = AuditAccount(
        steps=watch.step,
        operators=sum(one.step == 0 for one in work.operations),
        hidden=[*watch.flow.opaque, *extensions][:20],
        gradients=unused_gradients(work, gradients, modules)[:MOST_ROWS],
        slices=sliced_calls(work, watch.slices)[:MOST_ROWS],
        alike=alike_modules(work, modules)[:MOST_ROWS],
        same=[
            *same_work(work, constants, watch.constants.built()),
            *repeated_work(work, repeats, watch.reruns.all(), others={*constants, *watch.copies.numbers}),
            *sample_work(work, watch.samples, repeats),
        ][:MOST_ROWS],
        double=double_work(work),
        results=[
            *unused_results(work, work.live),
            *read_numbers(work),
            *(unused_derivatives(work, watch.joined) if shows_reads else ()),
        ][:MOST_ROWS],
        partly_read=[*partly_read(work, partly), *partly_used_samples(work, partly)][:MOST_ROWS],
        graphs=unused_graphs(work)[:MOST_ROWS],
        padding=padded_work(work, watch.lookups)[:MOST_ROWS],
        kept=kept_graphs(work)[:MOST_ROWS],
        broadcasts=broadcasts(work)[:MOST_ROWS],
        tables=table_gradients(work, watch.lookups, gradients, optimizers)[:MOST_ROWS],
        copies=needless_copies(work, watch.copies, constants, chains)[:MOST_ROWS] if shows_reads else [],
        cheaper=cheaper_operators(work, choices, repeats)[:MOST_ROWS] if shows_reads else [],
        prefixes=prefix_work(work, chains)[:MOST_ROWS],
    )
    return Audited(account, work.places.all)


def _reason_against() -> str:
    """Why nothing is looked at here; "" where it can be."""
    if dynamo.is_in_use(live_objects):
        return _COMPILED
    if is_another_active():
        return _OTHER_MODE
    graph = getattr(torch.cuda, "CUDAGraph", None)
    if graph is not None and "torch.cuda.graphs" in sys.modules and any(live_objects([graph])):
        return _CAPTURED
    return ""
