"""Several runs of the same code in one folder: what a comparison takes the noise between runs from."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from deepscope.errors import DeepScopeError, OptionError
from deepscope.records import Profile
from deepscope.store.readable import read_newest
from deepscope.store.runs import TraceSelection, select_from

REPEATS = 5
"""Runs of a folder that are looked at."""


def load_repeats(
    path: str | os.PathLike[str],
    load: Callable[[TraceSelection], Profile],
    *,
    rank: int | None = None,
    stage: str | None = None,
    limit: int = REPEATS,
) -> list[Profile]:
    """The newest run at `path` and, of the `limit` newest runs there, those that ran the same code alike.

    These are runs of the same program, arguments, texts, stage, device and number of ranks. A run whose texts are not
    known has no repeats.

    Args:
        path: a trace, a folder or an fsspec URL of one.
        load: loads the profile of a selection.
        rank: only this rank.
        stage: this stage in place of the training stage.
        limit: how many runs are looked at.

    Raises:
        TraceError, OptionError: as `load_profile`, of the newest run; another that cannot be read is no repeat.
    """
    newest = read_newest(os.fspath(path), load, rank=rank, stage=stage)
    newest.answer.trace.warnings.extend(newest.skipped)
    found = newest.found
    profiles = [newest.answer]
    code = _code(newest.answer)
    runs = list(dict.fromkeys(one.run for one in found))
    for run in runs[1:limit] if code else ():
        with suppress(DeepScopeError, OptionError):
            profile = load(select_from([one for one in found if one.run == run], rank=rank, stage=stage))
            if _code(profile) == code:
                profiles.append(profile)
    return profiles


def _code(profile: Profile) -> tuple[object, ...]:
    """What runs share that can be taken for repeats; empty where it is not known."""
    texts = sorted((path, file.sha256) for path, file in profile.files.items() if file.sha256)
    info = profile.trace
    if not texts:
        return ()
    return info.program, info.arguments, info.stage, profile.metric, info.device, len(info.ranks), tuple(texts)
