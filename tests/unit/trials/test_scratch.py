"""A scratch folder looks like the folder that it stands for, and holds back what is written to it."""

import os
from pathlib import Path

import pytest

from deepscope.trials import scratch
from deepscope.trials.runs import Command, environment, may_write
from deepscope.trials.scratch import fill_scratch


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name, size in {"train.py": 10, "data/large.bin": scratch.SMALL_BYTES + 1, "data/small.csv": 5}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    return folder


def test_small_files_are_copies_large_ones_links_and_folders_real(source, tmp_path):
    made = tmp_path / "made"
    fill_scratch(source, made)
    assert sorted(str(path.relative_to(made)) for path in made.rglob("*")) == [
        "data", "data/large.bin", "data/small.csv", "train.py",
    ]  # fmt: skip
    assert (made / "data" / "large.bin").is_symlink()
    assert not any(path.is_symlink() for path in (made / "train.py", made / "data", made / "data" / "small.csv"))
    (made / "data" / "new").touch()
    (made / "train.py").write_text("changed")
    assert (source / "train.py").read_bytes() == b"x" * 10
    assert not (source / "data" / "new").exists()


def test_a_folder_of_very_many_files_is_a_link_and_named(source, tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "MOST_FILES", 20)
    (source / "many").mkdir()
    for number in range(30):
        (source / "many" / f"{number}").touch()
    made = fill_scratch(source, tmp_path / "made")
    assert made.linked_folders == ["many"]
    assert (tmp_path / "made" / "many").is_symlink()
    sentences = list(may_write(Command.parsed(["train.py", "--out=/data/x"], working=source)))
    assert any("many" in one for one in sentences)
    assert any("/data/x" in one for one in sentences)


def test_what_is_there_already_stays_and_what_is_left_out_is_absent(source, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    (made / "train.py").write_text("of the revision")
    fill_scratch(source, made, without={"data/small.csv"})
    assert (made / "train.py").read_text() == "of the revision"
    assert [path.name for path in (made / "data").iterdir()] == ["large.bin"]


def test_a_scratch_folder_within_the_source_does_not_hold_itself(source):
    fill_scratch(source, source / "scratch" / "1")
    assert not (source / "scratch" / "1" / "scratch" / "1").exists()


def test_paths_of_the_source_become_paths_of_the_scratch_folder(source, tmp_path, monkeypatch):
    monkeypatch.chdir(source)
    given = {"PYTHONPATH": os.pathsep.join(["src", str(source / "lib"), "/elsewhere"]), "PYTHONSAFEPATH": "1", "A": "b"}
    made = tmp_path / "made"
    command = Command("train.py", (), is_module=False, root=source.resolve(), working=source.resolve() / "data")
    found = environment(given, command, made, tmp_path)
    assert found["PWD"] == str(made / "data")
    assert found["PYTHONPATH"].split(os.pathsep) == [str(made / "src"), str(made / "lib"), "/elsewhere"]
    assert (found["A"], found["WANDB_MODE"], "PYTHONSAFEPATH" in found) == ("b", "offline", False)


@pytest.mark.parametrize(
    ("words", "target", "is_module", "arguments"),
    [
        (["train.py", "-m", "x"], "train.py", False, ("-m", "x")),
        (["python", "train.py"], "train.py", False, ()),
        (["python3.11", "-m", "package.train", "--lr", "1"], "package.train", True, ("--lr", "1")),
    ],
)
def test_a_program_is_written_as_for_python(tmp_path, words, target, is_module, arguments):
    found = Command.parsed(words, working=tmp_path)
    assert (found.target, found.is_module, found.arguments) == (target, is_module, arguments)


def test_a_program_outside_of_the_folder_is_run_where_it_is(tmp_path):
    working = tmp_path / "here"
    working.mkdir()
    scratch = tmp_path / "scratch"
    assert Command.parsed(["sub/train.py"], working=working).target_in(scratch) == str(scratch / "sub" / "train.py")
    outside = Command.parsed([str(tmp_path / "train.py")], working=working)
    assert outside.target_in(scratch) == str(tmp_path / "train.py")
