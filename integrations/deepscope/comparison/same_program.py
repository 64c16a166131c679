"""Whether two runs are of one program, so that a change of its code can be judged by them; and of the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from deepscope.comparison.pairing import relative_path
from deepscope.records import Profile, SourceFile
from deepscope.remap.likeness import is_meaningful
from deepscope.trace.source_lines import source_lines

MOST_LINES = 0.5
"""Two runs of one program share more than this part of their telling lines."""


def is_same_program(old: Profile, new: Profile) -> bool:
    """Whether both ran one script with the same arguments in one project on like machines, and share most lines.

    This asks only what DeepScope's header states. What a trace does not state is not taken to be equal.
    """
    info = new.trace
    is_stated = bool(info.program and info.arguments and info.project_root)
    return is_stated and _statement(old) == _statement(new) and not share_few_lines(shared_lines(old, new))


def is_same_code(old: Profile, new: Profile) -> bool | None:
    """Whether the user's files that ran are equal, on equal versions of Python and torch; None where unknown."""
    before, after = _hashes(old), _hashes(new)
    versions = [(one.trace.python, one.trace.torch, one.trace.lightning) for one in (old, new)]
    if not before or not after or not all((*before.values(), *after.values())):
        return None
    return before == after and versions[0] == versions[1]


def share_few_lines(shared: float | None) -> bool:
    """Whether two runs with this part of shared lines are of two programs, as far as is known."""
    return shared is None or shared <= MOST_LINES


def shared_lines(old: Profile, new: Profile) -> float | None:
    """The part of the telling lines of the files that ran that both have, 0 to 1; None where a run's are not known."""
    texts = {file.sha256: file.text for one in (old, new) for file in one.files.values() if file.sha256 and file.text}
    before, after = _telling_lines(old, texts), _telling_lines(new, texts)
    if not all(any(not isinstance(line, _Unknown) for line in side) for side in (before, after)):
        return None
    return (before & after).total() / max(before.total(), after.total())


class _Unknown:
    """A line of which neither text nor file is known: it equals no other."""


def _statement(profile: Profile) -> tuple[object, ...]:
    info = profile.trace
    return (
        info.program,
        info.arguments,
        info.project_root,
        info.stage,
        profile.metric,
        info.device,
        len(info.ranks),
    )


def _own_files(profile: Profile) -> dict[str, SourceFile]:
    """The user's files whose lines ran, by path."""
    return {path: profile.files.get(path, SourceFile()) for path in {line.file for line in profile.lines}}


def _hashes(profile: Profile) -> dict[str, str]:
    root = profile.trace.project_root
    return {relative_path(path, root): file.sha256 for path, file in _own_files(profile).items()}


def _telling_lines(profile: Profile, texts: Mapping[str, str]) -> Counter[Hashable]:
    """Each line by its text; of a file known by its hash alone, each measured line by hash and number.

    Lines of a file of which neither is known are `_Unknown`.
    """
    found: Counter[Hashable] = Counter()
    for path, file in _own_files(profile).items():
        text = file.text or texts.get(file.sha256)
        if text:
            found.update(line.strip() for line in source_lines(text) if is_meaningful(line))
        else:
            numbers = {one.line for one in profile.lines if one.file == path}
            found.update((file.sha256, number) if file.sha256 else _Unknown() for number in numbers)
    return found
