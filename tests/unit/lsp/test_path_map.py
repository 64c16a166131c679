"""Recorded files and local ones: which is which."""

from pathlib import Path

import pytest

from deepscope.records import SourceFile
from deepscope.records.source_files import source_lines
from deepscope_lsp.engine.path_map import FileMatch, PathMap, parts_of

MODEL = "import torch\n\ndef forward(x):\n    return torch.relu(x)\n"
OTHER = "import os\n\ndef load(path):\n    return os.listdir(path)\n"


def path_map(files: dict[str, str | None], *roots: Path, project_root: str = "", **more: str) -> PathMap:
    sources = {path: SourceFile(text=text) if text is not None else None for path, text in files.items()}
    return PathMap(sources, project_root, [str(root) for root in roots], dict(more))


def match(paths: PathMap, path: Path | str | None, text: str = MODEL) -> FileMatch:
    return paths.match(None if path is None else str(path), source_lines(text))


def write(path: Path, text: str = MODEL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_same_path_is_the_same_file_also_through_a_link(tmp_path: Path) -> None:
    file = write(tmp_path / "real" / "model.py")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    paths = path_map({str(file): MODEL}, tmp_path)
    assert match(paths, file) == FileMatch(str(file))
    assert match(paths, tmp_path / "link" / "model.py") == FileMatch(str(file))
    assert paths.local(str(file)) == str(file)


def test_the_recorded_root_leads_to_the_workspace_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "src" / "model.py", "changed = 1\n")
    paths = path_map({"/cluster/job/src/model.py": MODEL}, tmp_path, project_root="/cluster/job")
    assert match(paths, file, "changed = 1\n") == FileMatch("/cluster/job/src/model.py")
    assert paths.local("/cluster/job/src/model.py") == str(file)


@pytest.mark.parametrize("recorded", ["C:\\job\\src\\model.py", "c:/job/src/Model.py"])
def test_paths_of_windows_are_read_here(tmp_path: Path, recorded: str) -> None:
    file = write(tmp_path / "src" / "model.py", "")
    assert parts_of(recorded).is_windows
    paths = path_map({recorded: None}, tmp_path, project_root="C:\\Job")
    assert match(paths, file, "x") == FileMatch(recorded)


def test_a_posix_path_matches_a_path_of_windows() -> None:
    paths = path_map({"/home/me/proj/src/model.py": MODEL}, project_root="/home/me/proj")
    assert match(paths, "D:\\proj\\src\\model.py") == FileMatch("/home/me/proj/src/model.py")


def test_content_finds_a_renamed_file_whatever_its_line_ends(tmp_path: Path) -> None:
    paths = path_map({"/job/old_name.py": MODEL, "/job/other.py": OTHER}, tmp_path)
    assert match(paths, tmp_path / "new_name.py", MODEL.replace("\n", "\r\n")) == FileMatch("/job/old_name.py")


def test_a_hash_finds_a_file_without_its_text(tmp_path: Path) -> None:
    import hashlib

    digest = hashlib.sha256(MODEL.encode()).hexdigest()
    paths = PathMap({"/job/a.py": SourceFile(sha256=digest), "/job/b.py": SourceFile(sha256="0" * 64)}, "", [])
    assert match(paths, tmp_path / "moved.py") == FileMatch("/job/a.py")


def test_the_longest_common_end_wins_if_the_texts_are_alike(tmp_path: Path) -> None:
    edited = MODEL + "# more\n"
    paths = path_map({"/job/a/model.py": MODEL, "/job/b/model.py": MODEL}, tmp_path)
    assert match(paths, tmp_path / "b" / "model.py", edited) == FileMatch("/job/b/model.py")
    assert match(paths, tmp_path / "b" / "model.py", OTHER) == FileMatch(None)


def test_two_files_that_fare_alike_are_never_chosen_between(tmp_path: Path) -> None:
    paths = path_map({"/job/a/model.py": MODEL, "/job/b/model.py": MODEL}, tmp_path)
    edited = MODEL + "# more\n"
    both = ("/job/a/model.py", "/job/b/model.py")
    assert match(paths, tmp_path / "model.py", edited) == FileMatch(None, both)
    assert match(paths, tmp_path / "model.py", MODEL) == FileMatch(None, both)


def test_a_file_that_lies_where_it_was_recorded_is_no_other_file(tmp_path: Path) -> None:
    recorded = write(tmp_path / "one" / "train.py")
    paths = path_map({str(recorded): MODEL}, tmp_path / "two")
    assert match(paths, tmp_path / "two" / "train.py", MODEL + "x = 1\n") == FileMatch(None)


def test_a_copy_of_a_file_that_is_still_there_teaches_nothing(tmp_path: Path) -> None:
    recorded, copy = write(tmp_path / "one" / "train.py"), write(tmp_path / "two" / "train.py")
    paths = path_map({str(recorded): MODEL}, tmp_path / "one")
    paths.roots = [str(tmp_path / "one"), str(tmp_path / "two")]
    paths.project_root = str(tmp_path / "one")
    assert match(paths, copy) == FileMatch(str(recorded))  # the same text ran
    assert paths.bind(str(recorded), str(copy)) == {}
    assert paths.local(str(recorded)) == str(recorded)
    assert match(paths, copy, MODEL + "x = 1\n") == FileMatch(None)


def test_a_renamed_and_edited_file_is_found_by_its_lines(tmp_path: Path) -> None:
    text = "".join(f"value_{number} = compute({number})\n" for number in range(20))
    paths = path_map({"/job/old.py": text, "/job/other.py": OTHER}, tmp_path)
    assert match(paths, tmp_path / "new.py", text + "added = 1\n") == FileMatch("/job/old.py")


def test_common_names_and_empty_files_name_nothing(tmp_path: Path) -> None:
    paths = path_map({"/job/a/__init__.py": None, "/job/empty.py": ""}, tmp_path)
    assert match(paths, tmp_path / "x" / "__init__.py", "") == FileMatch(None)


def test_a_setting_is_above_all_and_a_match_teaches_the_folder(tmp_path: Path) -> None:
    files: dict[str, str | None] = {"/job/x/a.py": MODEL, "/job/x/b.py": OTHER, "/job/y/a.py": MODEL}
    paths = path_map(files, tmp_path, **{"/job/y": str(tmp_path)})
    assert match(paths, tmp_path / "a.py") == FileMatch("/job/y/a.py")
    learning = path_map(files, tmp_path)
    assert learning.bind("/job/x/a.py", str(tmp_path / "src" / "a.py")) == {"/job/x": str(tmp_path / "src")}
    changed = write(tmp_path / "src" / "b.py", "nothing = 'alike'\n")
    assert match(learning, changed, "nothing = 'alike'\n") == FileMatch("/job/x/b.py")
    assert learning.local("/job/x/b.py") == str(changed)


def test_a_cell_is_known_by_its_content_alone() -> None:
    paths = path_map({"/tmp/ipykernel_1/12.py": "a = 1\nb = a + 1", "/tmp/ipykernel_1/13.py": "print(1)"})
    assert match(paths, None, "a = 1\nb = a + 1") == FileMatch("/tmp/ipykernel_1/12.py")
    assert match(paths, None, "never ran") == FileMatch(None)


def test_a_cell_that_ran_in_two_processes_is_for_a_person_to_say() -> None:
    cell = "a = 1\nb = a + 1"
    paths = path_map({"/tmp/ipykernel_1/12.py": cell, "/tmp/ipykernel_2/12.py": cell})
    assert match(paths, None, cell) == FileMatch(None, ("/tmp/ipykernel_1/12.py", "/tmp/ipykernel_2/12.py"))


def test_a_cell_with_a_magic_is_known_by_its_other_lines() -> None:
    ran = "get_ipython().run_line_magic('time', 'step()')\nhidden = layer(batch)\nloss = hidden.square().mean()\n"
    paths = path_map({"/tmp/ipykernel_1/12.py": ran, "/tmp/ipykernel_1/13.py": "print(loss.item())"})
    typed = "%time step()\nhidden = layer(batch)\nloss = hidden.square().mean()"
    assert match(paths, None, typed) == FileMatch("/tmp/ipykernel_1/12.py")


@pytest.mark.parametrize(
    "recorded", ["\\\\host\\share\\a.py", "//host/share/a.py", "/a\0b.py", "", "/job/../../etc/passwd"]
)
def test_hostile_paths_are_neither_asked_for_nor_followed(tmp_path: Path, recorded: str) -> None:
    paths = path_map({recorded: None}, tmp_path, project_root="/job")
    found = paths.local(recorded)
    assert found is None or not found.startswith(str(tmp_path))


def test_the_workspaces_own_copy_of_what_ran_elsewhere_on_this_machine_is_the_file(tmp_path: Path) -> None:
    recorded, copy = write(tmp_path / "one" / "train.py"), write(tmp_path / "two" / "train.py")
    paths = path_map({str(recorded): MODEL}, tmp_path / "two", project_root=str(tmp_path / "one"))
    assert paths.local(str(recorded)) == str(copy)
    assert match(paths, copy) == FileMatch(str(recorded))
    assert match(paths, copy, MODEL + "x = 1\n") == FileMatch(str(recorded))


def test_another_project_with_a_file_of_that_name_is_no_copy(tmp_path: Path) -> None:
    recorded = write(tmp_path / "one" / "train.py")
    write(tmp_path / "two" / "train.py", OTHER)
    paths = path_map({str(recorded): MODEL}, tmp_path / "two", project_root=str(tmp_path / "one"))
    assert paths.local(str(recorded)) == str(recorded)


COPIES = ["build/lib/pkg/model.py", ".venv/lib/python3.13/site-packages/pkg/model.py", "backup/model.py"]


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("own", ["pkg/model.py", "src/pkg/model.py"])
def test_a_copy_that_is_opened_first_is_not_where_links_lead(tmp_path: Path, own: str, copy: str) -> None:
    recorded = f"/cluster/job/{own}"
    file, opened = write(tmp_path / own), write(tmp_path / copy)
    paths = path_map({recorded: MODEL}, tmp_path, project_root="/cluster/job")
    assert match(paths, opened) == FileMatch(recorded)
    assert paths.bind(recorded, str(opened)) == {}
    assert paths.local(recorded) == str(file)


@pytest.mark.parametrize("copy", COPIES[:2])
@pytest.mark.parametrize("own", ["pkg/model.py", "src/pkg/model.py"])
def test_links_to_what_ran_in_a_copy_lead_to_the_file_that_it_was_made_from(
    tmp_path: Path, own: str, copy: str
) -> None:
    recorded, file = write(tmp_path / copy), write(tmp_path / own)
    paths = path_map({str(recorded): MODEL}, tmp_path, project_root=str(tmp_path))
    assert paths.local(str(recorded)) == str(file)
    assert match(paths, file) == FileMatch(str(recorded))
    paths.bind(str(recorded), str(file))
    assert match(paths, file, MODEL + "more = 1\n") == FileMatch(str(recorded)), "what was learned outlives an edit"
    write(file, OTHER)
    unlike = path_map({str(recorded): MODEL}, tmp_path, project_root=str(tmp_path))
    assert unlike.local(str(recorded)) == str(recorded)


def test_of_two_workspace_folders_the_one_that_the_trace_is_of_comes_first(tmp_path: Path) -> None:
    own, other = write(tmp_path / "own" / "model.py"), write(tmp_path / "other" / "model.py")
    paths = path_map({"/cluster/job/model.py": MODEL}, own.parent, other.parent, project_root="/cluster/job")
    paths.bind("/cluster/job/model.py", str(other))
    assert paths.local("/cluster/job/model.py") == str(own)


def test_a_file_that_stands_nearer_to_the_recorded_path_is_no_copy(tmp_path: Path) -> None:
    recorded = "/cluster/job/a/model.py"
    write(tmp_path / "model.py", MODEL + "edited = 1\n")
    nearer = write(tmp_path / "src" / "a" / "model.py")
    paths = path_map({recorded: MODEL}, tmp_path)
    paths.bind(recorded, str(nearer))
    assert paths.local(recorded) == str(nearer)


def test_where_the_workspace_lies_makes_none_of_its_files_a_copy(tmp_path: Path) -> None:
    file = write(tmp_path / "build" / ".work" / "site-packages" / "project" / "model.py")
    paths = path_map({str(file): MODEL}, file.parent)
    assert paths.local(str(file)) == str(file)
