"""Files that commands write beside their place first: what stands there already, and places of other kinds."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deepscope.whole_files import whole_file, whole_files

TO_STANDARD_OUTPUT = """
from pathlib import Path
from deepscope.whole_files import whole_file
with whole_file(Path("/dev/stdout")) as part:
    part.write_text("from here\\n")
"""


def _write(path: Path, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text)


def test_a_file_that_is_written_anew_keeps_its_mode_and_the_links_to_it(tmp_path: Path) -> None:
    target, link = tmp_path / "out.json", tmp_path / "link.json"
    target.write_text("before")
    target.chmod(0o640)
    link.symlink_to(target)
    _write(link, "after")
    assert (link.is_symlink(), target.read_text(), target.stat().st_mode & 0o777) == (True, "after", 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "out.json"]


def test_a_device_is_written_to_itself() -> None:
    _write(Path(os.devnull), "anything")
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev")
def test_standard_output_by_its_name_stays_the_file_that_the_shell_opened(tmp_path: Path) -> None:
    target = tmp_path / "all.txt"
    with target.open("w") as stream:
        subprocess.run([sys.executable, "-c", TO_STANDARD_OUTPUT], stdout=stream, check=True)
        assert os.fstat(stream.fileno()).st_ino == target.stat().st_ino
    assert target.read_text() == "from here\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
def test_a_named_pipe_is_written_to_itself(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    _write(pipe, "through it")
    reader.join(10)
    assert (read, pipe.is_fifo()) == (["through it"], True)


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        _write(tmp_path, "text")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_two_names_keeps_both(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("before")
    os.link(first, second)
    _write(first, "after")
    assert second.read_text() == "after"


def test_a_file_in_a_folder_that_takes_no_new_ones_is_written_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_text("before")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)
    _write(tmp_path / "one", "after")
    with whole_files(tmp_path) as folder:
        assert folder == tmp_path
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one": "after"}


def test_a_file_that_is_a_mount_is_filled_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    (tmp_path / "one").write_text("before")
    monkeypatch.setattr(Path, "replace", busy)
    _write(tmp_path / "one", "after")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one": "after"}


def test_files_of_a_folder_keep_their_modes_and_the_links_to_them(tmp_path: Path) -> None:
    target, folder = tmp_path / "elsewhere.csv", tmp_path / "tables"
    folder.mkdir()
    target.write_text("before")
    target.chmod(0o640)
    (folder / "lines.csv").symlink_to(target)
    with whole_files(folder) as beside:
        (beside / "lines.csv").write_text("after")
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("after", 0o640)
    assert [path.is_symlink() for path in folder.iterdir()] == [True]
