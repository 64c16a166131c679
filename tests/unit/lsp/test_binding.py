"""A recorded file joined to a buffer, with and without its text."""

import hashlib
import os
from pathlib import Path

import pytest

from deepscope.records import Profile, SourceFile
from deepscope_lsp.engine.binding import Binding, Mark, bind
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.source_files import Buffer
from lsp_profiles import NET, SOURCE, make_profile


def shown(binding: Binding, *, with_changed: bool = True) -> dict[int, tuple[int, Mark]]:
    return {one.line: (one.record.line, one.mark) for one in binding.shown_between(1, 99, with_changed=with_changed)}


def test_numbers_move_with_their_lines_and_edited_ones_are_marked() -> None:
    buffer = Buffer(SOURCE)
    binding = bind(ProfileIndex(make_profile("/job/a.py")), "/job/a.py", buffer, None)
    binding.spliced(buffer.replace((1, 0), (1, 0), "# new\n"))
    assert shown(binding) == {line + 1: (line, Mark.NONE) for line in NET.values()}
    binding.spliced(buffer.replace((8, 17), (8, 21), "gelu"))
    assert shown(binding)[8] == (NET["relu"], Mark.EDITED)
    assert 8 not in shown(binding, with_changed=False)
    binding.spliced(buffer.replace((8, 17), (8, 21), "relu"))
    binding.spliced(buffer.replace((1, 0), (2, 0), ""))
    assert shown(binding) == {line: (line, Mark.NONE) for line in NET.values()}


def without_text(file: Path, recorded_at: str, sha256: str = "") -> Profile:
    profile = make_profile(str(file), text=None, recorded_at=recorded_at)
    profile.files = {str(file): SourceFile(sha256=sha256)} if sha256 else {}
    return profile


@pytest.mark.parametrize(
    ("written", "mark"), [("2026-01-01T00:00:00+00:00", Mark.NONE), ("2026-01-03T00:00:00+00:00", Mark.UNVERIFIED)]
)
def test_a_file_newer_than_a_trace_without_texts_is_marked(tmp_path: Path, written: str, mark: Mark) -> None:
    from datetime import datetime

    file = tmp_path / "train.py"
    file.write_text(SOURCE, encoding="utf-8")
    seconds = datetime.fromisoformat(written).timestamp()
    os.utime(file, (seconds, seconds))
    profile = without_text(file, "2026-01-02T00:00:00+00:00")
    buffer = Buffer("# unsaved\n" + SOURCE)
    binding = bind(ProfileIndex(profile), str(file), buffer, str(file))
    assert shown(binding) == {line + 1: (line, mark) for line in NET.values()}


@pytest.mark.parametrize(("text", "mark"), [(SOURCE, Mark.NONE), (SOURCE + "\n# more\n", Mark.OTHER_TEXT)])
def test_a_hash_tells_whether_the_file_is_what_ran(tmp_path: Path, text: str, mark: Mark) -> None:
    file = tmp_path / "train.py"
    file.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    profile = without_text(file, "2020-01-01T00:00:00+00:00", digest)
    binding = bind(ProfileIndex(profile), str(file), Buffer(text), str(file))
    assert {one for _, one in shown(binding).values()} == {mark}
    assert bool(shown(binding, with_changed=False)) == (mark is Mark.NONE)


def test_a_text_that_is_not_saved_is_known_by_its_hash_too(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("# changed\n" + SOURCE, encoding="utf-8")
    profile = without_text(file, "2020-01-01T00:00:00+00:00", hashlib.sha256(SOURCE.encode()).hexdigest())
    buffer = Buffer(file.read_text(encoding="utf-8"))
    binding = bind(ProfileIndex(profile), str(file), buffer, str(file))
    assert not binding.may_be_what_ran
    binding.spliced(buffer.replace((1, 0), (2, 0), ""))
    assert binding.may_be_what_ran
    again = bind(ProfileIndex(profile), str(file), buffer, str(file))
    assert shown(again) == {line: (line, Mark.NONE) for line in NET.values()}


def test_a_vanished_file_without_text_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "gone.py"
    binding = bind(ProfileIndex(without_text(file, "")), str(file), Buffer(SOURCE), str(file))
    assert {one for _, one in shown(binding).values()} == {Mark.UNVERIFIED}
