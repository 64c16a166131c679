"""`scripts/check-vsix`: what the registries of extensions would refuse is named, one sentence each."""

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

MANIFEST = {
    "name": "example",
    "publisher": "someone",
    "version": "1.2.3",
    "displayName": "Example",
    "description": "An extension",
    "license": "MIT",
    "categories": ["Other"],
}
PICTURE = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR" + struct.pack(">II", 128, 128)
FILES = {"readme.md": b"# Example", "changelog.md": b"# Changes", "LICENSE.txt": b"MIT", "icon.png": PICTURE}
KINDS = {"readme.md": "Content.Details", "changelog.md": "Content.Changelog", "LICENSE.txt": "Content.License"}
KINDS["icon.png"] = "Icons.Default"


def packed(
    path: Path,
    *,
    changed: dict[str, object] | None = None,
    files: dict[str, bytes] | None = None,
    tags: str = "one,two",
) -> Path:
    """A VSIX with these fields of package.json and these files in place of the usual ones; b"" leaves a file out."""
    assets = "".join(
        f'<Asset Type="Microsoft.VisualStudio.Services.{kind}" Path="extension/{name}"/>'
        for name, kind in KINDS.items()
    )
    with zipfile.ZipFile(path, "w") as package:
        package.writestr(
            "extension.vsixmanifest",
            '<PackageManifest xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011"><Metadata>'
            f'<Identity Id="example" Version="1.2.3" Publisher="someone"/><Tags>{tags}</Tags><Properties/></Metadata>'
            f"<Assets>{assets}</Assets></PackageManifest>",
        )
        package.writestr("extension/package.json", json.dumps({**MANIFEST, **(changed or {})}))
        for name, content in {**FILES, **(files or {})}.items():
            if content:
                package.writestr(f"extension/{name}", content)
    return path


def said(repository: Path, path: Path, *options: str) -> str:
    command = [sys.executable, str(repository / "scripts" / "check-vsix"), *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0), done.stderr
    return done.stderr


def test_a_sound_package_passes(repository: Path, tmp_path: Path) -> None:
    assert said(repository, packed(tmp_path / "a.vsix")) == ""


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"version": "1.2.4"}, "name different versions"),
        ({"version": "1.2.3-beta"}, "is not major.minor.patch"),
        ({"publisher": "some one"}, "publisher 'some one' is none"),
        ({"license": ""}, "license is empty"),
        ({"description": "x" * 2049}, "description has 2049 characters"),
        ({"displayName": "Example\u202e"}, "displayName has a character that cannot be shown"),
        ({"categories": ["Profilers"]}, "category 'Profilers' is none"),
        ({"enabledApiProposals": ["chatParticipant"]}, "proposed API"),
    ],
)
def test_a_field_that_a_registry_refuses_is_named(
    changed: dict[str, object], sentence: str, repository: Path, tmp_path: Path
) -> None:
    assert sentence in said(repository, packed(tmp_path / "a.vsix", changed=changed))


def test_files_that_are_missing_or_of_another_kind_are_named(repository: Path, tmp_path: Path) -> None:
    assert "which is not in the package" in said(repository, packed(tmp_path / "a.vsix", files={"LICENSE.txt": b""}))
    small = PICTURE[:16] + struct.pack(">II", 64, 64)
    assert "icon.png is no PNG" in said(repository, packed(tmp_path / "b.vsix", files={"icon.png": small}))
    assert "31 keywords" in said(repository, packed(tmp_path / "c.vsix", tags=",".join(map(str, range(31)))))
    (tmp_path / "d.vsix").write_bytes(b"no archive")
    assert "cannot be read" in said(repository, tmp_path / "d.vsix")


def test_pages_of_a_release_lead_nowhere_within_the_package(repository: Path, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.vsix", files={"readme.md": b"![Lines](media/lines.png) [docs](https://example.com)"})
    assert said(repository, path) == ""
    published = said(repository, path, "--published")
    assert "has the link media/lines.png" in published
    assert "names no repository" in published
    assert "example.com" not in published
