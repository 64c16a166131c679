"""Runs in S3, read from moto's server where they lie."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import deepscope
from deepscope.errors import TraceError
from deepscope.store import several_traces, single_trace
from deepscope.store.ranks import read_ranks
from deepscope.store.selection import select
from random_traces import random_trace
from store_servers import (
    RANKS,
    free_port,
    reads_as_local,
    report_alone,
    running,
    skip_without,
    without_paths,
    write_run,
)

skip_without("moto", "flask", "flask_cors", "s3fs")
pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SERVER = Path(__file__).parents[1] / "moto_server.py"
BUCKET = "runs"


class Store:
    """A bucket, and what was asked of its server."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self._log = url, log
        import boto3

        self.client: Any = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        self.client.create_bucket(Bucket=BUCKET)

    def put(self, folder: Path, prefix: str) -> str:
        for path in sorted(folder.iterdir()):
            self.client.upload_file(str(path), BUCKET, f"{prefix}/{path.name}")
        self.forget()
        return f"s3://{BUCKET}/{prefix}"

    def forget(self) -> None:
        self._log.write_text("")

    def forbid(self, word: str) -> None:
        Path(f"{self._log}.forbidden").write_text(word)

    def asked(self) -> list[list[str]]:
        """Method, path, range and the number of requests in work, of each request since `forget`."""
        return [line.split(" ") for line in self._log.read_text().splitlines()]


@contextmanager
def serving(folder: Path, late_seconds: float = 0.0) -> Iterator[Store]:
    port = free_port()
    command = [sys.executable, str(SERVER), str(port), str(folder / "requests"), str(late_seconds)]
    with running(command, port, folder / "moto.log"):
        yield Store(f"http://127.0.0.1:{port}", folder / "requests")


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(tmp_path_factory.mktemp("server")) as store:
        yield store


@pytest.fixture
def store(server: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    yield server
    server.forbid("nothing")
    forget_clients()


def forget_clients() -> None:
    """fsspec keeps its clients, and the next test has another server."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def test_a_run_is_read_where_it_lies(store: Store, folder: Path, tmp_path: Path) -> None:
    url = store.put(folder, "read")
    reads_as_local(url, folder)
    assert report_alone(url, tmp_path / "alone") == set()


def test_ranks_are_read_by_processes_that_reach_the_store_as_the_caller_does(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    url = store.put(folder, "processes")
    monkeypatch.setattr(several_traces, "cores", lambda: 2)
    monkeypatch.setattr(several_traces, "REMOTE_WORTH_FILES", 1)
    monkeypatch.setattr(single_trace, "read_profile", None)  # nothing is read in this process
    assert read_ranks(url, cache=False).failures == []
    forget_clients()
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": store.url})
    assert read_ranks(url, cache=False).failures == []


def test_an_object_that_may_not_be_read_is_the_failure_of_its_rank(store: Store, folder: Path) -> None:
    url = store.put(folder, "forbidden")
    whole = deepscope.load_profile(url, cache=False)
    store.forbid(".rank3.")
    profile = deepscope.load_profile(url, cache=False)
    assert profile.trace.ranks == [0, 1, 2, 4, 5]
    (warning,) = [one for one in profile.trace.warnings if one not in whole.trace.warnings]
    assert warning.startswith(f"rank 3 is left out: {url}/ada_3.rank3.")
    assert "Access Denied" in warning
    assert [one.rank for one in read_ranks(url, cache=False).failures] == [3]
    with pytest.raises(TraceError, match="Access Denied"):
        deepscope.load_profile(url, rank=3, cache=False)


def test_what_is_kept_is_not_asked_for_again_until_its_etag_changes(store: Store, folder: Path) -> None:
    url = store.put(folder, "kept")
    first = deepscope.load_profile(url)
    store.forget()
    assert deepscope.load_profile(url) == first
    gets = [one for one in store.asked() if one[0] == "GET" and "/ada_" in one[1]]
    assert len(gets) == RANKS  # the heads alone
    name = sorted(folder.iterdir())[2].name
    other = random_trace(7)
    other.metadata["distributedInfo"] = {"rank": 2, "world_size": RANKS}
    other.write(folder / name)
    store.client.upload_file(str(folder / name), BUCKET, f"kept/{name}")
    store.forget()
    again = deepscope.load_profile(url)
    assert without_paths(again) == without_paths(deepscope.load_profile(folder, cache=False))
    gets = [one[1] for one in store.asked() if one[0] == "GET" and "/ada_" in one[1]]
    assert len(gets) == RANKS + 1
    assert max(gets, key=gets.count).endswith(name)


def test_heads_are_asked_for_at_once_by_ranges_and_the_folder_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "run", 80)
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server", 0.05) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        url = store.put(folder, "many")
        files = select(url).files
        forget_clients()
        asked = store.asked()
    assert len(files) == 80
    lists = [one for one in asked if "list-type=2" in one[1]]
    heads = [one for one in asked if one[0] == "GET" and "/ada_" in one[1]]
    assert len(lists) <= 3  # is it a folder, and what is in it
    assert len(heads) == 80
    assert all(one[2].startswith("bytes=0-") for one in heads)
    assert max(int(one[3]) for one in heads) >= 8


def test_the_head_of_a_large_trace_is_all_that_finding_it_asks_for(store: Store, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 2)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes() + bytes(1 << 20))  # `gzip -d` ignores what follows
    url = store.put(folder, "large")
    assert len(select(url).files) == 2
    gets = [one for one in store.asked() if one[0] == "GET" and "/ada_" in one[1]]
    assert [one[2] for one in gets] == ["bytes=0-65535"] * 2


def test_what_is_new_in_the_folder_is_seen_by_a_process_that_looked_before(store: Store, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    last = max(folder.iterdir())
    body = last.read_bytes()
    last.unlink()
    url = store.put(folder, "growing")
    assert len(select(url).files) == RANKS - 1
    store.client.put_object(Bucket=BUCKET, Key=f"growing/{last.name}", Body=body)
    assert len(select(url).files) == RANKS


def test_without_credentials_the_reason_is_told(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = store.put(folder, "credentials")
    forget_clients()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(TraceError, match=r"[Cc]redentials"):
        deepscope.load_profile(url, cache=False)


def test_a_store_that_the_callers_code_set_up_is_read_by_it(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of the caller's own for the protocol: another process would know nothing of it."""
    import fsspec
    import s3fs

    url = store.put(folder, "ours")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setattr(several_traces, "cores", lambda: 2)
    monkeypatch.setattr(several_traces, "REMOTE_WORTH_FILES", 1)

    class Ours(s3fs.S3FileSystem):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, endpoint_url=store.url, **options)

    registry = dict(fsspec.registry)
    fsspec.register_implementation("s3", Ours, clobber=True)
    try:
        found = deepscope.load_profile(url, cache=False)
    finally:
        fsspec.register_implementation("s3", registry.get("s3", s3fs.S3FileSystem), clobber=True)
    assert without_paths(found) == without_paths(deepscope.load_profile(folder, cache=False))
