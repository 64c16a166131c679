"""Runs a Python program as `python program.py` would, and records a few of its training steps.

    python record.py program.py [its arguments ...]

A program that records itself (`Trainer(profiler="deep")`, `deepscope.profile`) is run as it is. In any other, recording
begins with the first step of a torch optimizer and counts their steps; the trace goes to `deepscope_logs` in the
working folder.
"""

import re
import runpy
import sys
from pathlib import Path

FOLDER = "deepscope_logs"
SCHEDULE = {"wait": 0, "warmup": 1, "active": 3}
RECORDS_ITSELF = re.compile(rb"^\s*(?:import|from)\s+deepscope\b|\bprofiler\s*=\s*(?!None\b)", re.MULTILINE)


class StepRecording:
    """A recording whose steps are those of the program's optimizers."""

    def __init__(self):
        self.recording = None
        self.hook = None

    def begin(self):
        """Has torch tell of each optimizer step, where it can."""
        from torch.optim import optimizer

        self.hook = optimizer.register_optimizer_step_post_hook(self.stepped)

    def stepped(self, *_):
        """An optimizer has made a step."""
        import deepscope
        from deepscope.errors import DeepScopeError

        if self.recording is not None:
            self.recording.step()
            return
        try:
            self.recording = deepscope.profile(FOLDER, **SCHEDULE).start()
        except DeepScopeError as error:  # the program is recording already
            self.hook.remove()
            sys.stderr.write(f"DeepScope: {error}\n")

    def end(self, *, complete):
        """Waits until the trace is written."""
        if self.recording is not None:
            self.recording.stop(complete=complete)
        else:
            sys.stderr.write("DeepScope: nothing was recorded: no torch optimizer made a step\n")


def main(program, arguments):
    """Runs the program under its own name and with its own folder first on the import path."""
    path = Path(program).resolve()
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(path.parent)
    # Where DeepScope looks for the project's root.
    sys.modules["__main__"].__file__ = str(path)
    if RECORDS_ITSELF.search(path.read_bytes()):
        runpy.run_path(str(path), run_name="__main__")
        return
    steps = StepRecording()
    steps.begin()
    complete = False
    try:
        runpy.run_path(str(path), run_name="__main__")
        complete = True
    finally:
        steps.end(complete=complete)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
