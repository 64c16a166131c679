"""`DeepProfiler` without its base class: what it does on Lightning's calls, whichever package Lightning is."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepscope.capture import process_identity as process
from deepscope.capture.lines import UserCode
from deepscope.capture.notices import warn
from deepscope.capture.options import RecordingOptions, is_chosen
from deepscope.capture.process_hooks.open_recorders import guarded
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.whole_run.run_timer import RunTimer, write_account
from deepscope.errors import RecorderError
from deepscope.lightning.actions import Action, Annotated, Loop, LoopMark, Profiled, classify
from deepscope.lightning.keywords import LightningKeywords, choose
from deepscope.lightning.runs import Armed, SanityCheck, TrainerRun, options_of, progress_of, run_of, summarize
from deepscope.lightning.stages import (
    OnDemandStage,
    Stage,
    StageWindows,
    batches_of,
    counts,
    open_control,
    planned_batches,
)
from deepscope.trace.format.run_account import RunAccount

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from deepscope.capture.on_demand.start import OnDemand

    class _LightningProfiler:
        """What is used of Lightning's `Profiler`, which comes in two packages."""

        dirpath: str | Path | None
        filename: str | None
        _stage: str | None

        def __init__(self, dirpath: str | Path | None = None, filename: str | None = None) -> None: ...
        def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None: ...
        def teardown(self, stage: str | None) -> None: ...

else:
    _LightningProfiler = object

_STAGES = {
    Loop.TRAIN: Stage.FIT,
    Loop.VALIDATE: Stage.VALIDATE,
    Loop.TEST: Stage.TEST,
    Loop.PREDICT: Stage.PREDICT,
}


class DeepProfiling(_LightningProfiler):
    """`Trainer(profiler=DeepProfiler(...))`: the lines of your code that cost the device time, for every stage.

    Args:
        dirpath: where the traces go; the logger's folder by default, else `deepscope_logs` in the Trainer's
            `default_root_dir` (the working directory unless set).
        filename: first part of the traces' names. As with Lightning's own profilers the summary then goes to
            `<dirpath>/<stage>-<filename>.txt` rather than to the terminal. With a template of the names, such as
            "{program}-{stage}-{rank}", the summary stays on the terminal.
        topics: what is recorded, all of it: names or a set's name from docs/recording.md, in place of the options
            `lines`, `profile_memory`, … .
        wait: batches of each cycle that pass unrecorded.
        warmup: batches of each cycle with torch's tracing switched on and nothing kept.
        active: batches of each cycle that are recorded; each cycle writes one file.
        repeat: cycles in each stage; 0 for as many as it has.
        skip_first: batches before the first cycle.
        schedule: as `torch.profiler.schedule` makes it, in place of these five numbers.
        activities: `torch.profiler.ProfilerActivity`s; by default all that this torch supports.
        lines: record the executing lines of user code.
        compiled_lines: have torch.compile keep the source lines of its kernels, and record them.
        include: globs of files, or names of packages, that count as user code though they lie outside the project.
        exclude: globs of files that do not count as user code.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: as `torch.profiler.profile` has them.
        ranks: the ranks that record; by default all.
        on_demand: record nothing until `deepscope attach` asks for it.
        on_trace_ready: called with the path of each trace once it is complete.
        **options: every other field of `deepscope.RecordingOptions`, and what Lightning's `PyTorchProfiler` takes
            (docs/lightning.md says what becomes of it).

    Raises:
        OptionError: an option has a value that cannot be used.
    """

    _lightning_module: Any = None
    """Set by the Trainer, a weak proxy."""
    _control: OnDemand | None = None
    """Of a profiler that records on demand."""

    def __init__(
        self,
        dirpath: str | Path | None = None,
        filename: str | None = None,
        **options: Unpack[LightningKeywords],
    ) -> None:
        super().__init__()  # first, for Lightning's __del__ runs even where an option is refused
        self._run: TrainerRun | None = None
        self._windows: dict[Stage, StageWindows | OnDemandStage] = {}
        self._current: StageWindows | OnDemandStage | None = None
        self._sanity = SanityCheck()
        self._is_in_epoch = False
        """Whether `run_training_epoch` goes on, which encloses all that fit does but its beginning and its end."""
        self._planned: int | None = None
        """How many batches this run of fit is to have, where that is certain."""
        self._timer = RunTimer()
        self._is_accounted = True
        """The whole run's account is written, or no run has begun."""
        self._armed = Armed()
        self._actions: dict[str, Action] = {}
        self._contexts: dict[str, Profiled] = {}
        self._phases: dict[str, str] = {}
        """Annotation → phase, of the actions seen so far; the windows' traces list them."""
        self._choices = choose(dirpath, filename, options)
        self.dirpath, self.filename = self._choices.dirpath, self._choices.filename
        self._know_compiled_lines()

    @property
    def options(self) -> RecordingOptions:
        """What is recorded, and when."""
        return self._choices.recording

    @property
    def traces(self) -> list[Path]:
        """The files that this process wrote in the newest run, by stage, oldest first; complete after the run."""
        recorders = [recorder for windows in self._windows.values() for recorder in windows.recorders]
        asked = [] if self._control is None else self._control.idle_recorder.traces
        return [*(path for recorder in recorders for path in recorder.traces), *asked]

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """A Trainer begins to fit, validate, test or predict."""
        self._begin_run(log_dir)
        super().setup(stage=stage, local_rank=local_rank, log_dir=log_dir)

    def _know_compiled_lines(self) -> None:
        if self.options.compiled_lines and not self._choices.on_demand:
            self._armed.hold_provenance()

    @guarded
    def _begin_run(self, log_dir: str | None) -> None:
        self._finish(complete=False)  # a run before this one whose end nobody reported
        self._disarm()
        self._windows = {}
        self._timer, self._is_accounted = RunTimer(), False
        self._sanity, self._is_in_epoch, self._planned = SanityCheck(), False, None
        trainer = self._lightning_module.trainer if self._lightning_module is not None else None
        run = self._run = run_of(trainer, log_dir)
        # Not what an earlier run was told: one profiler may serve Trainers with different loggers.
        self.dirpath = self._choices.dirpath or str(run.folder)
        if not is_chosen(self.options.rank_choice, run.rank, run.local_rank):
            self._run = None
            return
        self._know_compiled_lines()
        if self.options.counters == "run":
            session = run.session(self.options, name=self._choices.name, phases=self._phases)
            self._armed.count(session, Path(self.dirpath or run.folder))
        if self._choices.on_demand:
            self._open_control()
            return
        self._armed.arm(self.options, trainer, self.profile)
        chosen = self.options
        self._armed.sample_pauses(self._timer, UserCode.find(chosen.root, chosen.include, chosen.exclude))

    def _open_control(self) -> None:
        assert self._run is not None
        folder = Path(self.dirpath or self._run.folder)
        self._control = open_control(folder, self._choices.name, self._choices.given, self._recorder_on_demand)

    @guarded
    def start(self, action_name: str) -> None:
        """Lightning begins an action."""
        action = self._actions.get(action_name) or self._understand(action_name)
        if action.begins is not None:
            self._timer.begin(action.begins)
        if action.mark is not LoopMark.NONE:
            began = time.perf_counter_ns()
            if action.mark is LoopMark.EPOCH_END:
                self._is_in_epoch = True
            self._before(action)
            self._timer.give_to_recording(time.perf_counter_ns() - began)
            if not self._sanity.is_over:
                self._note(action, began)
        if self._current is not None and action.annotation is not None:
            self._current.push(action.annotation)

    @guarded
    def stop(self, action_name: str) -> None:
        """Lightning is done with an action."""
        action = self._actions.get(action_name) or self._understand(action_name)
        if action.mark is LoopMark.EPOCH_END:
            self._is_in_epoch = False
            self._timer.end_epoch()
        if action.ends is not None:
            self._timer.end(action.ends)
        current = self._current
        if current is None:
            return
        if action.annotation is not None:
            current.pop(action.annotation)
        if action.mark is LoopMark.BATCH_END:
            current.end_batch()
        elif action.mark is LoopMark.EPOCH_END:
            began = time.perf_counter_ns()
            current.end_epoch()
            self._timer.give_to_recording(time.perf_counter_ns() - began)

    def profile(self, action_name: str) -> Profiled:
        """The action as a context; an exception that leaves one of Lightning's own ends the window and saves it."""
        return self._contexts.get(action_name) or self._context(action_name)

    @guarded
    def fail(self, action_name: str, error: BaseException) -> None:
        """An exception leaves an action: save what was recorded before it can get lost."""
        is_lightnings_own = action_name.startswith(("[", "run_training_"))
        is_signal = isinstance(error, (StopIteration, GeneratorExit))
        if not is_lightnings_own or is_signal:
            return
        if self._current is not None:
            self._current.fail(error)
            self._current.suspend(complete=False)
            self._current.wait()
        if action_name == "run_training_epoch" or not self._is_in_epoch:
            self._end_run()  # the outermost action that there is, and Lightning tears nothing down after an exception

    def summary(self) -> str:
        """The hot lines and the phases of the stage that the Trainer ran; "" where another rank prints them."""
        self._finish(complete=True)
        if self._run is None or self._control is not None or not (self._run.rank == 0 or self.filename):
            return ""
        main = getattr(self._stage, "value", self._stage) or ""
        windows = {stage: one for stage, one in self._windows.items() if isinstance(one, StageWindows)}
        return summarize(windows, main=main, rows=self._choices.rows, sort=self._choices.sort)

    def teardown(self, stage: str | None) -> None:
        """The run is over; what is still open was interrupted."""
        if hasattr(self, "_armed"):  # Lightning's __del__ comes here, too, maybe of one that was never made
            self._finish(complete=False)
            self._end_run()
        super().teardown(stage=stage)

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to a run in this process: a copy, or one in a spawned process, starts afresh."""
        live = dict.fromkeys(("_run", "_current", "_control", "_lightning_module", "_write_stream", "_output_file"))
        fresh = {"_windows": {}, "_contexts": {}, "_armed": Armed(), "_timer": RunTimer(), "_is_accounted": True}
        return self.__dict__ | live | fresh

    def _understand(self, action_name: str) -> Action:
        action = self._actions[action_name] = classify(action_name)
        if action.annotation is not None and action.phase is not None:
            self._phases[action.annotation] = action.phase
        return action

    def _context(self, action_name: str) -> Profiled:
        action = self._actions.get(action_name) or self._understand(action_name)
        is_timed = action.begins is not None or action.ends is not None
        is_plain = action.mark is LoopMark.NONE and action.annotation is not None and not is_timed
        is_ours = type(self).start is DeepProfiling.start and type(self).stop is DeepProfiling.stop
        kind = Annotated if is_plain and is_ours else Profiled
        context = self._contexts[action_name] = kind(self, action_name, action.annotation or "")
        return context

    def _note(self, action: Action, began_ns: int) -> None:
        """The sanity check goes on, or is over as training begins."""
        if action.loop is Loop.TRAIN:
            self._sanity.is_over = True
        elif action.loop is Loop.VALIDATE and self._stage_of(Loop.VALIDATE) is Stage.SANITY_CHECK:
            self._sanity.note(began_ns, time.perf_counter_ns())

    def _before(self, action: Action) -> None:
        if action.mark is LoopMark.EXCEPTION:
            self._finish(complete=False)
            self._end_run()
        elif (
            action.loop is not None and action.mark is not LoopMark.BATCH_END and action.mark is not LoopMark.EPOCH_END
        ):
            if action.mark is LoopMark.LOOP_END:
                self._leave(action.loop)
            else:
                self._enter(action.loop, begins_batch=action.mark is LoopMark.BATCH_START)

    def _enter(self, loop: Loop, *, begins_batch: bool) -> None:
        stage = self._stage_of(loop)
        windows = self._windows.get(stage)
        if self._current is not windows and self._current is not None:
            self._current.suspend()
            self._current = None
        if not begins_batch or self._run is None:
            return
        if windows is None:
            windows = self._windows[stage] = self._new_windows(stage)
        self._current = windows
        try:
            windows.begin_batch()
        except RecorderError as error:
            warn(f"{stage.value} is not recorded: {error}")
            self._run, self._current = None, None

    def _leave(self, loop: Loop) -> None:
        if self._current is not None and self._current is self._windows.get(self._stage_of(loop)):
            self._current.suspend()
            self._current = None

    @guarded
    def _finish(self, *, complete: bool) -> None:
        account = self._account()
        if self._current is not None:
            self._current.suspend(complete=complete)
            self._current = None
        for windows in self._windows.values():
            windows.wait()
        if account is not None:
            write_account(account, self.traces)

    def _account(self) -> RunAccount | None:
        """Of the run that ends now; None where it has been written, or for a run that trained nothing."""
        is_accounted, self._is_accounted = self._is_accounted, True
        if is_accounted or not self._timer.has_account:
            return None
        trainer = self._lightning_module.trainer if self._lightning_module is not None else None
        return self._armed.account(self._timer, trainer)

    @guarded
    def _end_run(self) -> None:
        if not self._is_accounted:
            self._finish(complete=False)
        self._disarm()
        if self._control is not None:
            self._control.idle_recorder.make = self._control.make_recorder  # and not this profiler, with its Trainer
        process.end_run()

    def _disarm(self) -> None:
        armed, self._armed = self._armed, Armed()
        armed.disarm()

    def _give_up(self) -> None:
        """After an error: keep what was recorded, and do nothing from here on."""
        self._run, self._current = None, None
        for windows in self._windows.values():
            windows.suspend(complete=False)

    def _stage_of(self, loop: Loop) -> Stage:
        if loop is Loop.VALIDATE and self._run is not None and getattr(self._run.trainer, "sanity_checking", False):
            return Stage.SANITY_CHECK
        return _STAGES[loop]

    def _new_windows(self, stage: Stage) -> StageWindows | OnDemandStage:
        run = self._run
        assert run is not None
        if self._armed.counted is not None:
            self._armed.counted.agree()  # there is a process group by then
        if self._control is not None:
            return OnDemandStage(self._control.idle_recorder, is_counted=counts(stage, run.trainer))
        if stage is Stage.FIT:
            self._planned = planned_batches(run.trainer)
        schedule = Schedule.of(self.options, batches_of(run.trainer, stage))
        return StageWindows(Plan(schedule), partial(self._new_recorder, run, stage))

    def _recorder_on_demand(
        self, options: RecordingOptions, plan: Plan | None, first_step: int, run_id: str
    ) -> Recorder:
        run = self._run
        if run is None:
            raise RecorderError("no Trainer runs")
        current = self._current
        stage = next((stage for stage, windows in self._windows.items() if windows is current), Stage.FIT)
        return self._new_recorder(replace(run, id=run_id), stage, plan, first_step, options)

    def _new_recorder(
        self, run: TrainerRun, stage: Stage, plan: Plan | None, first_step: int, asked: RecordingOptions | None = None
    ) -> Recorder:
        settings = options_of(run.trainer)
        if stage is Stage.FIT:
            settings |= progress_of(run.trainer, first_step)
            settings |= {"sanity_check_ns": self._sanity.duration_ns, "planned_batches": self._planned or 0}
        session = run.session(
            asked or self.options, name=self._choices.name, phases=self._phases, stage=stage.value, settings=settings
        )
        folder = Path(self.dirpath or run.folder)
        return Recorder(
            session,
            plan,
            folder=folder,
            first_step=first_step,
            owner=self,
            is_abandoned=lambda: asked is not None,  # a recording of the program's own goes first
            workers=self._armed.workers,
            counts_run=False,
        )
