"""The runs before: among them is what a new run is compared with when nobody has chosen a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import without_secrets
from deepscope.records import Profile
from deepscope.store.recognition import FoundTrace


def earlier_traces(found: Sequence[FoundTrace], profile: Profile) -> list[FoundTrace]:
    """Traces of earlier runs that state the same script and arguments in their heads; in the order of `found`."""
    own = set(profile.trace.paths or [profile.trace.path])
    shown = [one for one in found if without_secrets(one.file.path) in own]
    stated = profile.trace.program, profile.trace.arguments
    if not shown or not all(stated):
        return []
    runs, recorded_ns = {one.run for one in shown}, min(one.time_ns for one in shown)
    return [
        one
        for one in found
        if one.run not in runs
        and one.time_ns < recorded_ns
        and one.identity.stage == shown[0].identity.stage
        and (one.identity.program, one.identity.arguments) == stated
    ]
