"""Runs in Google's cloud storage, read from an emulator where they lie."""

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from store_servers import free_port, is_read_anew, reads_as_local, report_alone, running, skip_without, write_run

skip_without("gcsfs")
EMULATOR = shutil.which("gcp-storage-emulator")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(EMULATOR is None, reason="a GCS emulator is not installed: scripts/store-servers brings it"),
]


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import fsspec
    import gcsfs

    port = free_port()
    assert EMULATOR is not None
    command = [EMULATOR, "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory", "--default-bucket", "runs"]
    with running(command, port, tmp_path / "log"):
        url = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
        yield url
        gcsfs.GCSFileSystem.clear_instance_cache()


def put(emulator: str, folder: Path, prefix: str) -> str:
    for path in sorted(folder.iterdir()):
        name = quote(f"{prefix}/{path.name}", safe="")
        request = urllib.request.Request(
            f"{emulator}/upload/storage/v1/b/runs/o?uploadType=media&name={name}",
            data=path.read_bytes(),
            headers={"Content-Type": "application/octet-stream"},
        )
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["name"] == f"{prefix}/{path.name}"
    return f"gs://runs/{prefix}"


def test_a_run_is_read_where_it_lies(emulator: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    url = put(emulator, folder, "experiment")
    reads_as_local(url, folder)
    assert report_alone(url, tmp_path / "alone", FSSPEC_GS='{"token": "anon"}') == set()
    is_read_anew(url, folder, lambda: put(emulator, folder, "experiment"))
