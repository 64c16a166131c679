"""The wheel, installed as a user installs it: into an environment of its own, without torch."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from trace_builder import TraceBuilder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(__file__).resolve().parents[2]
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(root)]
    subprocess.run(build, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_packages_the_example_and_the_entry_points(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert {"deepscope/__init__.py", "deepscope/py.typed", "deepscope/examples/train_transformer.py"} <= names
    assert "deepscope_lsp/__init__.py" in names
    assert {"deepscope/docs/findings/hot-line.md", "deepscope/docs/findings/DS001.md"} <= names
    assert {"deepscope/skills/deepscope/SKILL.md", "deepscope/skills/deepscope/references/commands.md"} <= names
    with zipfile.ZipFile(wheel) as archive:
        [sbom] = [json.loads(archive.read(name)) for name in names if name.endswith(".cdx.json")]
        notices = archive.read("deepscope/dashboard/bundle/NOTICES.txt").decode()
    assert any(".dist-info/sboms/" in name for name in names)
    assert "preact" in {one["name"] for one in sbom["components"]}
    assert all(
        f"{one['name']} {one['version']} ({one['licenses'][0]['expression']})" in notices for one in sbom["components"]
    )
    bundle = ("index.html", "dashboard.js", "dashboard.css", "NOTICES.txt")
    assert {f"deepscope/dashboard/bundle/{name}" for name in bundle} <= names
    assert not [name for name in names if name.startswith(("integrations", "lsp_server", "tests"))]
    assert "[lightning.pytorch.callbacks_factory]" in entry_points
    assert "[pytorch_lightning.callbacks_factory]" in entry_points
    assert "[tensorboard_plugins]\ndeepscope = deepscope.dashboard.tensorboard:Loader" in entry_points


def test_everything_that_is_published_names_one_version(repository: Path) -> None:
    def check(version: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "scripts/release", "--check", version]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)

    [version] = re.findall(
        r'^version = "(.+)"$', (repository / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert check(version).returncode == 0
    assert "names version" in check("0.0.0").stderr


@pytest.mark.thorough
def test_a_fresh_environment_without_torch_reports_a_trace(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin_folder = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = [str(bin_folder / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    trace = TraceBuilder().line("/app/train.py", 3, "main", 0, 1_000).kernel("gemm", 100, 2_000, 400)
    path = trace.write(tmp_path / "run.pt.trace.json")

    report = [str(bin_folder / "deepscope"), "report", str(path), "--format", "json"]
    done = subprocess.run(report, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [(line["line"], line["self_device_ns"]) for line in answer["lines"]] == [(3, 400)]

    # No pygls is there, but the address of a diagnostic's page needs none.
    program = (
        "from deepscope_lsp.engine.wording.findings import page_uri; print(page_uri('hot-line'), page_uri('DS001'))"
    )
    asked = [str(bin_folder / "python"), "-c", program]
    addresses = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split()
    for address, title in zip(addresses, ("# hot-line: ", "# DS001: "), strict=True):
        page = Path(unquote(urlsplit(address).path))
        assert page.is_relative_to((tmp_path / "venv").resolve())
        assert page.read_text(encoding="utf-8").startswith(title)

    installed = [str(bin_folder / "python"), "-c", "import torch"]
    assert subprocess.run(installed, capture_output=True, check=False).returncode != 0
