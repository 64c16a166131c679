"""Which files count as the user's own."""

from __future__ import annotations

import sysconfig
import zipfile
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture.lines import UserCode
from deepscope.capture.lines.recorded_code import find_root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (
        "train.py",
        "pkg/model.py",
        ".venv/pyvenv.cfg",
        ".venv/lib/python3.11/site-packages/dep/code.py",
        ".venv/bin/tool.py",
        "conda/conda-meta/history",
        "conda/lib/x.py",
        "vendor/site-packages/y.py",
        "pyproject.toml",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


@pytest.mark.parametrize("name", ["train.py", "pkg/model.py", "pkg/not_there_any_more.py"])
def test_files_below_the_root_are_the_users(project: Path, name: str) -> None:
    assert UserCode.find(root=project).owns(str(project / name))


@pytest.mark.parametrize(
    "name",
    [
        ".venv/lib/python3.11/site-packages/dep/code.py",
        ".venv/bin/tool.py",
        "conda/lib/x.py",
        "vendor/site-packages/y.py",
        "../elsewhere.py",
        "torchinductor_me/ab/cab.py",
    ],
)
def test_what_is_installed_in_the_project_or_lies_outside_is_not(project: Path, name: str) -> None:
    assert not UserCode.find(root=project).owns(str(project / name))


def test_a_root_inside_an_environment_folder_is_still_a_project(project: Path) -> None:
    root = project / "conda" / "work"
    root.mkdir()
    (root / "a.py").write_text("")
    assert UserCode.find(root=root).owns(str(root / "a.py"))


def test_python_torch_and_deepscope_are_never_the_users() -> None:
    everything = UserCode.find(root="/")
    assert not everything.owns(str(Path(sysconfig.get_path("stdlib")) / "json" / "decoder.py"))
    assert not everything.owns(torch.nn.__file__)
    assert not everything.owns(deepscope.__file__)
    assert not UserCode.find(root="/", include=["deepscope"]).owns(deepscope.__file__)


@pytest.mark.parametrize(
    "name",
    [
        "<ipython-input-3-0f1e2d3c4b5a>",
        "/tmp/ipykernel_4711/123456789.py",
        "/tmp/marimo_88/__marimo__cell_Hbol_.py",
        "<python-input-0>",
    ],
)
def test_notebook_cells_are_the_users_and_keep_their_names(project: Path, name: str) -> None:
    assert UserCode.find(root=project).owns(name)
    assert UserCode.real_path(name) == name


@pytest.mark.parametrize(
    "name", ["<string>", "<stdin>", "<attrs generated init x.Y>", "<eval_with_key>.0", "<frozen os>"]
)
def test_text_that_stands_in_no_file_is_not(project: Path, name: str) -> None:
    assert not UserCode.find(root=project).owns(name)


def test_links_into_the_project_and_out_of_it(project: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "lib.py").write_text("")
    (project / "linked").symlink_to(shared)
    (tmp_path / "alias").symlink_to(project)
    code = UserCode.find(root=project)
    assert code.owns(str(project / "linked" / "lib.py"))
    assert not code.owns(str(shared / "lib.py"))
    assert code.owns(str(tmp_path / "alias" / "train.py"))
    assert UserCode.real_path(str(tmp_path / "alias" / "train.py")) == str(project / "train.py")


def test_include_opens_up_paths_and_packages(project: Path, tmp_path: Path) -> None:
    code = UserCode.find(root=project, include=["../other", "torch.nn.modules.*"])
    assert code.owns(str(tmp_path / "other" / "deep" / "a.py"))
    assert code.owns(torch.nn.modules.linear.__file__)
    assert not code.owns(torch.optim.__file__)
    assert UserCode.find(root=project, include=["torch.optim"]).owns(torch.optim.lr_scheduler.__file__)
    assert UserCode.find(root=project, include=["../o*/a.py"]).owns(str(tmp_path / "other" / "a.py"))


def test_exclude_wins_over_include_and_the_project(project: Path) -> None:
    code = UserCode.find(root=project, include=["torch.nn"], exclude=["pkg", "torch.nn.modules.linear"])
    assert not code.owns(str(project / "pkg" / "model.py"))
    assert code.owns(str(project / "train.py"))
    assert not code.owns(torch.nn.modules.linear.__file__)
    assert code.owns(torch.nn.modules.conv.__file__)


def test_the_root_is_the_nearest_folder_upward_with_a_marker(project: Path) -> None:
    assert find_root(project / "pkg" / "model.py") == project
    (project / "pkg" / "setup.py").write_text("")
    assert find_root(project / "pkg" / "model.py") == project / "pkg"


def test_an_installed_script_gives_way_to_the_current_folder(project: Path) -> None:
    assert find_root(project / ".venv" / "bin" / "tool.py", folder=project / "pkg") == project


def test_a_script_in_an_archive_stands_where_the_archive_does(project: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(project / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "")
    assert find_root(project / "app.pyz" / "__main__.py", folder=tmp_path) == project


def test_without_a_marker_it_is_the_scripts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepscope.capture.lines.recorded_code.ROOT_MARKERS", ("no-such-marker",))
    script = tmp_path / "a" / "b.py"
    script.parent.mkdir()
    script.write_text("")
    assert find_root(script) == tmp_path / "a"


def test_what_torch_compile_writes_is_nobodys_though_its_cache_lies_in_the_project(tmp_path: Path) -> None:
    code = UserCode(tmp_path)
    assert not code.owns(str(tmp_path / ".cache" / "cd" / f"c{'a2' * 25}b.py"))
    assert code.owns(str(tmp_path / "c.py"))
