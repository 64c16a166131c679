"""The cache gives back what was kept, or nothing."""

from pathlib import Path
from typing import cast

import pytest

import built_profiles
from deepscope.records import Profile, View
from deepscope.store import cache
from deepscope.store.files import TraceFile

FILE = TraceFile(path="/a/trace.json", size_bytes=10, mtime_ns=20)


def kept() -> list[Path]:
    return list((cache.cache_folder() / "kept").glob("*.profile"))


def test_a_kept_profile_comes_back_as_it_was() -> None:
    profile = built_profiles.training()
    cache.save(FILE, profile, partial=False)
    assert cache.load_kept(FILE, partial=False) == profile


@pytest.mark.parametrize(
    ("file", "step", "partial"),
    [
        (TraceFile(path="/b/trace.json", size_bytes=10, mtime_ns=20), None, False),
        (TraceFile(path="/a/trace.json", size_bytes=11, mtime_ns=20), None, False),
        (TraceFile(path="/a/trace.json", size_bytes=10, mtime_ns=21), None, False),
        (TraceFile(path="/a/trace.json", size_bytes=10, mtime_ns=20, token="etag"), None, False),
        (FILE, 3, False),
        (FILE, None, True),
    ],
)
def test_another_trace_or_another_question_is_not_answered(file: TraceFile, step: int | None, partial: bool) -> None:
    cache.save(FILE, built_profiles.training(), partial=False)
    assert cache.load_kept(file, View(step=step), partial=partial) is None


def test_other_code_or_another_format_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save(FILE, built_profiles.training(), partial=False)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "PROFILE_FORMAT", -1)
        assert cache.load_kept(FILE, partial=False) is None
    monkeypatch.setattr(cache, "_own_fingerprint", lambda _: "edited")
    assert cache.load_kept(FILE, partial=False) is None


def test_any_damage_is_noticed() -> None:
    cache.save(FILE, built_profiles.training(), partial=False)
    (path,) = kept()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:-1], whole + b"x", bytes(flipped), b"not a profile", whole[:20]):
        path.write_bytes(damaged)
        assert cache.load_kept(FILE, partial=False) is None
    path.write_bytes(whole)
    assert cache.load_kept(FILE, partial=False) is not None


def test_a_whole_file_of_another_shape_is_not_a_profile() -> None:
    cache.save(FILE, cast(Profile, {"metric": "bananas"}), partial=False)
    assert len(kept()) == 1
    assert cache.load_kept(FILE, partial=False) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(blocked))
    cache.save(FILE, built_profiles.training(), partial=False)
    assert cache.load_kept(FILE, partial=False) is None


def test_profiles_unused_for_longest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    files = [TraceFile(path=f"/a/{place}.json", size_bytes=1, mtime_ns=1) for place in range(3)]
    for place, file in enumerate(files):
        before = set(kept())
        cache.save(file, built_profiles.training(), partial=False)
        (path,) = set(kept()) - before
        os.utime(path, (1000 + place, 1000 + place))
    size = kept()[0].stat().st_size
    assert cache.load_kept(files[0], partial=False) is not None  # used just now
    monkeypatch.setattr(cache, "LIMIT_BYTES", 2 * size)
    cache.prune()
    assert [cache.load_kept(file, partial=False) is not None for file in files] == [True, False, True]
    assert not list((cache.cache_folder() / "kept").glob("*.tmp"))


def test_what_earlier_versions_kept_goes_and_nothing_else() -> None:
    mine = cache.cache_folder() / "profiles" / "notes.msgpack"
    earlier = [mine.with_name(f"{'0a' * 16}{end}") for end in (".msgpack", ".summary.msgpack")]
    earlier.append(cache.cache_folder() / "timelines" / f"{'1b' * 16}.timeline")
    other = cache.cache_folder() / "kept" / "a.pt.trace.json"
    for path in (mine, *earlier, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    cache.save(FILE, built_profiles.training(), partial=False)
    assert [path.exists() for path in (mine, other, *earlier)] == [True, True, False, False, False]
    assert not (cache.cache_folder() / "timelines").exists()


@pytest.mark.parametrize("module", ["trace/read.py", "records/numbers.py", "analysis/tables/lines.py", "quantities.py"])
def test_an_edit_of_any_module_that_makes_profiles_changes_the_fingerprint(tmp_path: Path, module: str) -> None:
    for part in ("trace", "records", "analysis/tables", "ranks", "store"):
        (tmp_path / part).mkdir(parents=True)
    for part in ("quantities.py", "printable.py"):
        (tmp_path / part).touch()
    (tmp_path / module).write_text("one = 1")
    before = cache.code_fingerprint(tmp_path)
    assert cache.code_fingerprint(tmp_path) == before
    (tmp_path / module).write_text("one = 11")
    assert cache.code_fingerprint(tmp_path) != before
