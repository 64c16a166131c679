"""Traces found by the settings' folders, files and globs."""

import os
from pathlib import Path

from deepscope.store.runs import Recognizer
from deepscope_lsp.engine.discovery import find_traces, lies_below, patterns_of, resolve_places


def paths(entries: list[str], root: Path) -> list[str]:
    return [one.file.path for one in find_traces(resolve_places(entries, str(root)), Recognizer())]


def touch(path: Path, seconds: int = 1_000, text: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (seconds, seconds))
    return path


def test_the_newest_trace_comes_first_by_the_time_in_its_name(tmp_path: Path) -> None:
    old = touch(tmp_path / "logs" / "a.1700000000000000000.pt.trace.json", 9_000)
    new = touch(tmp_path / "logs" / "run" / "b.1800000000000000000.pt.trace.json.gz", 1_000)
    plain = touch(tmp_path / "logs" / "c.pt.trace.json", 5_000)
    touch(tmp_path / "logs" / "notes.json")
    touch(tmp_path / "logs" / ".hidden" / "d.pt.trace.json")
    touch(tmp_path / "logs" / "node_modules" / "e.pt.trace.json")
    assert paths(["logs"], tmp_path) == [str(new), str(old), str(plain)]


def test_globs_and_single_files(tmp_path: Path) -> None:
    one = touch(tmp_path / "exp" / "one" / "deepscope_logs" / "w.pt.trace.json")
    named = touch(tmp_path / "kept" / "anything.json")
    touch(tmp_path / "venv" / "lib" / "deepscope_logs" / "x.pt.trace.json")
    touch(tmp_path / "venv" / "pyvenv.cfg")
    places = resolve_places(["**/deepscope_logs", "kept/anything.json", "s3://bucket/runs", "missing"], str(tmp_path))
    assert {found.file.path for found in find_traces(places, Recognizer())} == {str(one), str(named)}
    assert places.urls == ("s3://bucket/runs",)


def test_links_in_a_circle_and_broken_ones_end(tmp_path: Path) -> None:
    trace = touch(tmp_path / "logs" / "w.pt.trace.json")
    (tmp_path / "logs" / "again").symlink_to(tmp_path / "logs", target_is_directory=True)
    (tmp_path / "logs" / "dangling.pt.trace.json").symlink_to(tmp_path / "nowhere")
    assert paths(["logs"], tmp_path) == [str(trace)]


def test_what_is_behind_a_link_is_not_where_an_editor_watches(tmp_path: Path) -> None:
    root, scratch = tmp_path / "project", tmp_path / "project scratch"
    (root / "runs").mkdir(parents=True)
    scratch.mkdir()
    (root / "logs").symlink_to(scratch, target_is_directory=True)
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    assert lies_below(str(root / "runs"), str(root))
    assert lies_below(str(tmp_path / "link" / "runs"), str(root))
    assert lies_below(str(root / "not there yet"), str(root))
    assert not lies_below(str(root / "logs"), str(root))
    assert not lies_below(str(scratch), str(root))


def test_a_folder_of_a_thousand_traces(tmp_path: Path) -> None:
    for number in range(1000):
        touch(tmp_path / "runs" / f"w.{1_700_000_000_000_000_000 + number}.pt.trace.json")
    found = paths(["runs"], tmp_path)
    assert len(found) == 1000
    assert found[0].endswith(".1700000000000000999.pt.trace.json")


def test_a_file_that_a_glob_names_counts_only_if_it_is_a_trace(tmp_path: Path) -> None:
    trace = touch(tmp_path / "a" / "profile.json", text='{"traceEvents": []}')
    touch(tmp_path / "a" / "package.json", text='{"name": "a"}')
    assert paths(["*/*.json"], tmp_path) == [str(trace)]


def test_an_editor_is_asked_to_watch_the_folders_of_the_settings_whole() -> None:
    entries = ["runs", "./logs/", "**/deepscope_logs", "a/*/tb", "/scratch/runs", "s3://bucket/runs", "../up", "."]
    assert patterns_of(entries) == ["**/runs/**", "**/logs/**", "**/deepscope_logs/**", "**/a/*/tb/**"]
