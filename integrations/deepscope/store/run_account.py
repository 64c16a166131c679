"""The accounts of a run that lie beside its traces, read each time that a profile is loaded: they come after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import asdict

from deepscope.records import Profile, RunEpoch, RunPart, WholeRun
from deepscope.records.merging import RankRecords, merge
from deepscope.store.files import TraceFile
from deepscope.trace.format.run_account import account_path, decoded_account
from deepscope.trace.kineto.remote import is_url

_MOST_BYTES = 1 << 20
"""A longer file is none of ours."""


def whole_run(files: Sequence[TraceFile]) -> WholeRun | None:
    """What the time of the traces' run went to, summed over the ranks; None where a rank has no sound account.

    Accounts in remote stores are not looked for.
    """
    found = []
    for file in files:
        one = None if is_url(file.path) else _read(Path(file.path))
        if one is None:
            return None
        found.append(one)
    ranks = range(len(found))
    return merge(RankRecords(found, ranks, {rank: rank for rank in ranks})) if found else None


def join_ended_run(profile: Profile, files: Sequence[TraceFile]) -> bool:
    """Join the account of a run that has ended since its profile was loaded; whether there is one now."""
    if profile.whole_run is None:
        profile.whole_run = whole_run(files)
        return profile.whole_run is not None
    return False


def _read(trace: Path) -> WholeRun | None:
    try:
        with account_path(trace).open("rb") as stream:
            account = decoded_account(stream.read(_MOST_BYTES))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    if account is None:
        return None
    return WholeRun(
        duration_ns=account.duration_ns,
        parts=[RunPart(**asdict(part)) for part in account.parts],
        epochs=[RunEpoch(**asdict(epoch)) for epoch in account.epochs],
        first_step_ns=account.first_step_ns,
    )
