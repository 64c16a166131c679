"""The run before: what a new run of the same program is compared with when nobody has chosen a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import without_secrets
from deepscope.records import Profile
from deepscope.store.recognition import FoundTrace
from deepscope_lsp.engine.profile.program import program_of

__all__ = ["earlier_traces", "is_same_program"]


def earlier_traces(found: Sequence[FoundTrace], profile: Profile) -> list[FoundTrace]:
    """Traces of earlier runs that may be of the same program, by what their heads say; in the order of `found`."""
    own = set(profile.trace.paths or [profile.trace.path])
    shown = [one for one in found if without_secrets(one.file.path) in own]
    if not shown:
        return []
    runs, recorded_ns = {one.run for one in shown}, min(one.time_ns for one in shown)
    return [
        one
        for one in found
        if one.run not in runs
        and one.time_ns < recorded_ns
        and one.identity.stage == shown[0].identity.stage
        and (one.identity.program == profile.trace.program or "" in {one.identity.program, profile.trace.program})
    ]


def is_same_program(old: Profile, new: Profile) -> bool:
    """Whether two runs are of one program on like machines, so that their steps can be compared."""
    return bool(program_of(new)) and _identity(old) == _identity(new)


def _identity(profile: Profile) -> tuple[object, ...]:
    info = profile.trace
    return program_of(profile), info.project_root, info.stage, profile.metric, info.device, len(info.ranks)
