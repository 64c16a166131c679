"""Runs in Azure's blob storage, read from Azurite where they lie."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store_servers import free_port, is_read_anew, reads_as_local, report_alone, running, skip_without, write_run

skip_without("adlfs")
AZURITE = shutil.which("azurite-blob")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(AZURITE is None, reason="Azurite is not installed: scripts/store-servers brings it"),
]

# Azurite's account and key are the same everywhere, and published.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from adlfs import AzureBlobFileSystem
    from azure.storage.blob import ContainerClient

    port = free_port()
    assert AZURITE is not None
    command = [AZURITE, "--inMemoryPersistence", "--blobPort", str(port), "--skipApiVersionCheck", "--silent"]
    with running(command, port, tmp_path / "log"):
        connection = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
        )
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        with ContainerClient.from_connection_string(connection, "runs") as client:
            client.create_container()
            yield client
        AzureBlobFileSystem.clear_instance_cache()


def put(container: Any, folder: Path, prefix: str) -> str:
    for path in sorted(folder.iterdir()):
        container.upload_blob(f"{prefix}/{path.name}", path.read_bytes(), overwrite=True)
    return f"abfs://runs/{prefix}"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # adlfs leaves its sessions open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_is_read_where_it_lies(container: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    url = put(container, folder, "experiment")
    reads_as_local(url, folder)
    assert report_alone(url, tmp_path / "alone") == set()
    is_read_anew(url, folder, lambda: put(container, folder, "experiment"))
