"""Which line of one profile is which line of another, by the texts that ran, and whether both are of one program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from deepscope.records import Line, Profile, SourceFile
from deepscope.records.source_files import base_name, path_below, source_lines
from deepscope.remap import LineMap
from deepscope.remap.diff import is_meaningful, shared_part, telling_lines

ALIKE_RATIO = 0.3
"""So many of a file's telling lines make one of the same name the same file."""
RENAMED_RATIO = 0.6
"""So many make one of another name the same file."""

Pairs = dict[int, int]
"""Index of an old line → index of the new line that it is."""


def pair_lines(old: Profile, new: Profile) -> Pairs:
    """The lines of `old` that are lines of `new`; neither side of a pair comes again.

    Within a file lines are carried over by a diff of the recorded texts, moved blocks and edited lines included.
    Without texts they are matched by function and text of the line, else by function and number. What is left is
    looked for in other files, by function and text.
    """
    pairs: Pairs = {}
    new_lines = _by_file(new)
    files = pair_files(old, new)
    for file, lines in _by_file(old).items():
        there = new_lines.get(files.get(file, ""), [])
        texts = _text(old, file), _text(new, files.get(file, ""))
        if there and texts[0] and texts[1]:
            pairs.update(_by_texts(old, new, lines, there, LineMap(*texts)))
        elif there:
            pairs.update(_without_texts(old, new, lines, there))
    left = [index for index in range(len(old.lines)) if index not in pairs]
    right = set(range(len(new.lines))) - set(pairs.values())
    return pairs | _across_files(old, new, left, right)


def relative_path(path: str, root: str) -> str:
    """A path below the recorded project root without that root, with `/`; any other as it is."""
    inner = path_below(path, root) if root.rstrip("/\\") else ""
    return (inner or path).replace("\\", "/")


def _by_file(profile: Profile) -> dict[str, list[int]]:
    """The lines of each file (indexes), in the order of the text."""
    found: dict[str, list[int]] = defaultdict(list)
    for index, line in sorted(enumerate(profile.lines), key=lambda one: one[1].line):
        found[line.file].append(index)
    return dict(found)


def _recorded_text(profile: Profile, file: str) -> str | None:
    return profile.files[file].text if file in profile.files else None


def _text(profile: Profile, file: str) -> list[str]:
    text = _recorded_text(profile, file)
    return source_lines(text) if text else []


def pair_files(old: Profile, new: Profile) -> dict[str, str]:
    """Old file → new file: of the same place in the project, of the same content, of the same name, renamed."""
    left = dict.fromkeys(line.file for line in old.lines)
    right = dict.fromkeys(line.file for line in new.lines)
    pairs: dict[str, str] = {}

    def place(profile: Profile) -> Callable[[str], str]:
        return lambda file: relative_path(file, profile.trace.project_root)

    def content(profile: Profile) -> Callable[[str], str]:
        return lambda file: profile.files[file].sha256 if file in profile.files else ""

    for key in (place, content):
        partner_of = {name: file for file, name in _unique(right, key(new)).items()}
        for file, name in _unique(left, key(old)).items():
            if name and (partner := partner_of.get(name)) is not None:
                pairs[file] = partner
                del left[file], right[partner]
    if not left or not right:
        return pairs
    # Once for each file: every file is compared with every other one.
    telling = {file: telling_lines(text) for file in left if (text := _recorded_text(old, file)) is not None}
    there = {file: {line.strip() for line in _text(new, file)} for file in right}

    def likeness(file: str, other: str) -> float:
        wanted = telling.get(file)
        if wanted is None or not there[other]:
            return 1.0 if base_name(file) == base_name(other) else 0.0
        return shared_part(wanted, there[other])

    for ratio, is_same_name in ((ALIKE_RATIO, True), (RENAMED_RATIO, False)):
        for file in list(left):
            alike = [one for one in right if not is_same_name or base_name(one) == base_name(file)]
            best = max(alike, key=lambda one: likeness(file, one), default=None)
            if best is not None and likeness(file, best) >= ratio:
                pairs[file] = best
                del left[file], right[best]
    return pairs


def _unique(files: Iterable[str], key: Callable[[str], str]) -> dict[str, str]:
    """The files whose key no other has."""
    keys = {file: key(file) for file in files}
    counts = Counter(keys.values())
    return {file: value for file, value in keys.items() if counts[value] == 1}


def _by_texts(old: Profile, new: Profile, lines: Sequence[int], there: Sequence[int], carried: LineMap) -> Pairs:
    at: dict[int, list[int]] = defaultdict(list)
    for index in there:
        at[new.lines[index].line].append(index)
    pairs: Pairs = {}
    for index in lines:
        record = old.lines[index]
        place = carried.line_of(record.line) or carried.edited_line_of(record.line)
        candidates = at.get(place, []) if place is not None else []
        if partner := _most_alike(record, [new.lines[one] for one in candidates]):
            pairs[index] = candidates.pop(next(i for i, one in enumerate(candidates) if new.lines[one] is partner))
    return pairs


def _most_alike(record: Line, candidates: Sequence[Line]) -> Line | None:
    """Of the records of one line that of the same function, else one that is as exact."""
    same = [one for one in candidates if one.exact == record.exact]
    return next((one for one in same if one.function == record.function), same[0] if same else None)


def _without_texts(old: Profile, new: Profile, lines: Sequence[int], there: Sequence[int]) -> Pairs:
    def by_text(line: Line) -> Hashable:
        return (line.function, line.exact, line.text.strip()) if line.text else None

    def by_number(line: Line) -> Hashable:
        return line.function, line.exact, line.line

    return _by_keys(old, new, lines, there, (by_text, by_number))


def _by_keys(
    old: Profile, new: Profile, left: Sequence[int], right: Sequence[int], keys: Sequence[Callable[[Line], Hashable]]
) -> Pairs:
    """The n-th of several alike matches the n-th."""
    pairs: Pairs = {}
    rest = list(right)
    for key in keys:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for index in left:
            if index not in pairs and (word := key(old.lines[index])) is not None:
                waiting[word].append(index)
        unmatched = []
        for index in rest:
            partners = waiting.get(key(new.lines[index]))
            if partners:
                pairs[partners.pop(0)] = index
            else:
                unmatched.append(index)
        rest = unmatched
    return pairs


def _across_files(old: Profile, new: Profile, left: Sequence[int], right: Iterable[int]) -> Pairs:
    """Lines that stand in another file: of equal function and text that says something, once on each side."""

    def unique(profile: Profile, rows: Iterable[int]) -> dict[Hashable, int]:
        found: dict[Hashable, list[int]] = defaultdict(list)
        for row in rows:
            line = profile.lines[row]
            if line.text and is_meaningful(line.text):
                found[line.function, line.exact, line.text.strip()].append(row)
        return {key: rows[0] for key, rows in found.items() if len(rows) == 1}

    there = unique(new, right)
    return {row: there[key] for key, row in unique(old, left).items() if key in there}


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
    machine = profile.metric, info.device, len(info.ranks)
    return info.program, info.arguments, info.project_root, info.stage, *machine


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
