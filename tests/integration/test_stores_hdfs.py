"""Runs in HDFS, read over WebHDFS from a NameNode and a DataNode of Hadoop's where they lie."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from store_servers import free_port, is_read_anew, reads_as_local, report_alone, running, skip_without, write_run

skip_without("requests")
HDFS = shutil.which("hdfs")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(HDFS is None, reason="Hadoop's hdfs is not installed: scripts/store-servers brings it"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a NameNode's web address, with one DataNode behind it."""
    folder = tmp_path_factory.mktemp("hdfs")
    rpc, web, data, data_rpc, data_web = (f"127.0.0.1:{free_port()}" for _ in range(5))
    configure(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://{rpc}", "hadoop.tmp.dir": str(folder / "data")})
    configure(
        folder / "hdfs-site.xml",
        {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.http-address": web,
            "dfs.datanode.address": data,
            "dfs.datanode.ipc.address": data_rpc,
            "dfs.datanode.http.address": data_web,
        },
    )
    own = {"HADOOP_CONF_DIR": str(folder)}
    assert HDFS is not None
    with ExitStack() as servers:

        def start(*words: str, address: str) -> None:
            port = int(address.rpartition(":")[2])
            servers.enter_context(running([HDFS, *words], port, folder / f"{words[0]}.log", **own))

        # Formats its disk and ends; then it serves.
        formatted = subprocess.run(
            [HDFS, "namenode", "-format", "-nonInteractive"], env={**os.environ, **own}, check=False
        )
        assert formatted.returncode == 0
        start("namenode", address=web)
        start("datanode", address=data_web)
        wait_for_disk(web)
        yield web


def configure(path: Path, settings: dict[str, str]) -> None:
    root = ET.Element("configuration")
    for name, value in settings.items():
        one = ET.SubElement(root, "property")
        ET.SubElement(one, "name").text = name
        ET.SubElement(one, "value").text = value
    ET.ElementTree(root).write(path)


def wait_for_disk(web: str) -> None:
    """Until the NameNode knows its DataNode."""
    for _ in range(300):
        query = "qry=Hadoop:service=NameNode,name=FSNamesystemState"
        with urllib.request.urlopen(f"http://{web}/jmx?{query}", timeout=30) as answer:
            (state,) = json.load(answer)["beans"]
        if state["NumLiveDataNodes"]:
            return
        time.sleep(0.1)
    raise AssertionError(state)


def put(web: str, folder: Path, name: str) -> str:
    """Writes the run into HDFS; its URL."""
    import fsspec

    host, port = web.split(":")
    store = fsspec.filesystem("webhdfs", host=host, port=int(port), user="ada")
    store.makedirs(f"/runs/{name}", exist_ok=True)
    for path in sorted(folder.iterdir()):
        store.put_file(str(path), f"/runs/{name}/{path.name}", overwrite=True)
    return f"webhdfs://{web}/runs/{name}"


def test_a_run_is_read_where_it_lies(cluster: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    url = put(cluster, folder, "experiment")
    reads_as_local(url, folder)
    assert report_alone(url, tmp_path / "alone") == set()


def test_the_user_of_a_url_asks(cluster: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    put(cluster, folder, "named")
    reads_as_local(f"webhdfs://ada@{cluster}/runs/named/", folder)


def test_a_file_that_changed_is_read_again_and_a_broken_one_is_the_failure_of_its_rank(
    cluster: str, tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "run")
    url = put(cluster, folder, "changing")
    is_read_anew(url, folder, lambda: put(cluster, folder, "changing"))
