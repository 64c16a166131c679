"""Ranks read by a Dask cluster of several worker processes, as they are without."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import deepscope
from deepscope.errors import MissingExtraError, NoTraceError, OptionError
from deepscope.records import WHOLE
from deepscope.store import cache, dask_cluster, single_trace
from deepscope.store.files import RemoteSettings
from deepscope.store.ranks import read_ranks
from deepscope.store.selection import select
from deepscope.store.several_traces import read_traces
from deepscope.store.single_trace import RankRequest, ReadRequest
from random_traces import random_trace

distributed: Any = pytest.importorskip("distributed", reason="distributed is not installed: pip install distributed")

pytestmark = pytest.mark.thorough
RANKS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    for rank in range(RANKS):
        builder = random_trace(rank % 4)
        builder.metadata["distributedInfo"] = {"rank": rank, "world_size": RANKS}
        builder.write(folder / f"ada_{rank}.rank{rank}.{1767319445000000000 + rank}.pt.trace.json.gz")
    return folder


class Cluster:
    """A scheduler and workers, each a process of its own as `dask scheduler` and `dask worker` start them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)
        )
        self.address = self._address(file)

    def worker(self, name: str, **environment: str) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name,
            "--local-directory", str(self._folder), **environment,
        )  # fmt: skip

    def _start(self, kind: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{kind}.log").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + kind, *arguments],
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._started.append(started)
        return started

    def _address(self, file: Path) -> str:
        for _ in range(600):
            if file.exists() and (text := file.read_text()):
                return str(msgspec.json.decode(text)["address"])
            time.sleep(0.1)
        raise AssertionError((self._folder / "scheduler.log").read_text())

    def end(self) -> None:
        for one in self._started:
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    each = Cluster(tmp_path_factory.mktemp("cluster"))
    for name in ("one", "two"):
        each.worker(name)
    yield each
    each.end()


def test_a_cluster_reads_what_is_read_here(folder: Path, workers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, ranks = deepscope.load_profile(folder, cache=False), read_ranks(folder, cache=False)
    told: list[tuple[int, int]] = []
    with monkeypatch.context() as patch:
        patch.setattr(single_trace, "read_profile", None)  # nothing is read here
        found = deepscope.load_profile(
            folder, cache=False, scheduler=workers.address, progress=lambda *step: told.append(step)
        )
        assert found == whole
        assert told[-1][0] == told[-1][1] > 0
        assert told == sorted(told)
        assert read_ranks(folder, cache=False, scheduler=workers.address) == ranks
    assert not [thread for thread in threading.enumerate() if "IO loop" in thread.name and thread.is_alive()]
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()


def test_what_the_cluster_read_is_kept_here(folder: Path, workers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = deepscope.load_profile(folder, scheduler=workers.address)
    monkeypatch.setattr(dask_cluster, "answers_of_cluster", None)
    assert deepscope.load_profile(folder, scheduler=workers.address) == first
    assert len(read_ranks(folder, scheduler=workers.address).summaries) == RANKS


def test_the_cache_of_a_worker_has_its_limit_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT_BYTES", 0)
    monkeypatch.setattr(dask_cluster, "_KEPT", count())
    asked = [ReadRequest(file, "profile", WHOLE, partial=False, cache=True) for file in select(str(folder)).files]
    profiles = cache.cache_folder() / "kept"
    left = []
    for request in asked[:2]:
        body = msgspec.msgpack.encode(RankRequest(request, RemoteSettings()))
        dask_cluster.answer_on_worker(body, dask_cluster._version())
        left.append(len(list(profiles.iterdir())))
    assert left == [0, 2]  # now and then is enough


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deepscope", *arguments],
        env={**os.environ, "DEEPSCOPE_CACHE_DIR": os.devnull, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_asks_the_cluster_that_the_variable_names(folder: Path, workers: Cluster) -> None:
    here = command("report", str(folder))
    there = command("report", str(folder), DASK_SCHEDULER_ADDRESS=workers.address)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")
    wrong = command("report", str(folder), DASK_SCHEDULER_ADDRESS="no such thing")
    assert wrong.returncode != 0
    assert "DASK_SCHEDULER_ADDRESS=no such thing: no Dask scheduler could be reached there" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_rank_that_the_cluster_cannot_read_is_named(folder: Path, workers: Cluster, tmp_path: Path) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    bad = next(tmp_path.glob("*.rank5.*"))
    bad.write_bytes(bad.read_bytes()[:-300])
    here = deepscope.load_profile(tmp_path, cache=False)
    assert deepscope.load_profile(tmp_path, cache=False, scheduler=workers.address) == here
    assert any(one.startswith(f"rank 5 is left out: {bad}") for one in here.trace.warnings)


def test_a_worker_killed_in_the_middle_changes_nothing(folder: Path, tmp_path: Path) -> None:
    """Both workers wait at their first trace until one of them is dead."""
    gate = tmp_path / "gate"
    (tmp_path / "sitecustomize.py").write_text(WAITING)
    each = Cluster(tmp_path)
    try:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        doomed = each.worker("doomed", GATE=str(gate), PYTHONPATH=path)
        each.worker("other", GATE=str(gate), PYTHONPATH=path)

        def kill() -> None:
            mark = Path(f"{gate}.{doomed.pid}")
            while not mark.exists() and doomed.poll() is None:
                time.sleep(0.05)
            os.kill(doomed.pid, signal.SIGKILL)
            doomed.wait()
            gate.touch()

        killer = threading.Thread(target=kill)
        killer.start()
        found = deepscope.load_profile(folder, cache=False, scheduler=each.address)
        killer.join()
        assert doomed.returncode == -signal.SIGKILL
        assert found == deepscope.load_profile(folder, cache=False)
    finally:
        gate.touch()
        each.end()


WAITING = """
import importlib.abc, importlib.util, os, sys, time

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "deepscope.store.dask_cluster":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            real = module.answer
            def waits(*args, **options):
                gate = os.environ["GATE"]
                open(gate + "." + str(os.getpid()), "w").close()
                while not os.path.exists(gate):
                    time.sleep(0.02)
                return real(*args, **options)
            module.answer = waits
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


def test_a_scheduler_that_is_lost_is_no_matter_of_single_ranks(folder: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "sitecustomize.py").write_text(WAITING)
    each = Cluster(tmp_path)
    try:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        worker = each.worker("only", GATE=str(gate), PYTHONPATH=path)

        def kill() -> None:
            while not Path(f"{gate}.{worker.pid}").exists() and worker.poll() is None:
                time.sleep(0.05)
            each.scheduler.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(OptionError, match="connection was lost before all was read; run again"):
            deepscope.load_profile(folder, cache=False, scheduler=each.address)
        killer.join()
    finally:
        gate.touch()
        each.end()


def test_a_trace_that_kills_each_worker_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        WAITING.replace("gate = os.environ", "('.rank3.' in args[0].file.path) and os._exit(1); gate = os.environ")
    )
    (tmp_path / "gate").touch()
    each = Cluster(tmp_path)
    try:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        for place in range(6):
            each.worker(f"worker {place}", GATE=str(tmp_path / "gate"), PYTHONPATH=path)
        profile = deepscope.load_profile(folder, cache=False, scheduler=each.address)
        assert profile.trace.ranks == [0, 1, 2, 4, 5, 6, 7]
        assert any("each worker of the cluster that read it died" in one for one in profile.trace.warnings)
    finally:
        each.end()


def test_a_worker_without_this_package_or_with_another_version_is_told(
    folder: Path, workers: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dask_cluster, "_version", lambda: "9.9.9 (profiles 99)")
        with pytest.raises(OptionError, match=r"has deepscope .* \(profiles \d+\), this machine has 9\.9\.9 .*same"):
            deepscope.load_profile(folder, cache=False, scheduler=workers.address)
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['deepscope'] = None")
    without = Cluster(tmp_path)
    try:
        without.worker("without", PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
        with pytest.raises(OptionError, match=r"a worker cannot import .*deepscope.*pip install 'deepscope=="):
            deepscope.load_profile(folder, cache=False, scheduler=without.address)
    finally:
        without.end()


def test_paths_that_the_workers_do_not_have_are_told(
    folder: Path, workers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = select(str(folder)).files
    requests = [ReadRequest(file, "profile", WHOLE, partial=False, cache=False) for file in files]
    there = {file.path for file in files}
    for path in there:
        Path(path).rename(path + ".away")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "exists", lambda path: str(path) in there)
            read = read_traces(requests, scheduler=workers.address)
    finally:
        for path in there:
            Path(path + ".away").rename(path)
    assert all(isinstance(one, NoTraceError) for one in read)
    assert "is not there on the cluster's worker" in str(read[0])
    assert "folder that all machines share" in str(read[0])


def test_stores_of_this_process_alone_are_read_here(folder: Path, workers: Cluster) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in folder.iterdir():
        memory.pipe(f"/cluster/{path.name}", path.read_bytes())
    try:
        found = deepscope.load_profile("memory://cluster", cache=False, scheduler=workers.address)
        assert found.totals == deepscope.load_profile(folder, cache=False).totals
    finally:
        memory.rm("/cluster", recursive=True)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "no such thing", "tcp://no.such.host.invalid:8786"])
def test_an_address_without_a_scheduler_is_told_at_once(
    folder: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(OptionError, match=r"scheduler='.*': no Dask scheduler could be reached there"):
        deepscope.load_profile(folder, cache=False, scheduler=address)


@pytest.mark.parametrize(
    ("says", "told"), [(b"SSH-2.0-x\r\n", "something else"), (b"", "nothing for 1 s"), (None, "ends the connection")]
)
def test_a_server_of_another_kind_is_told(
    folder: Path, says: bytes | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(ConnectionResetError):
                if says is not None:
                    connection.sendall(says)
                    connection.recv(1)  # until the other side ends it

        serving = threading.Thread(target=serve)
        serving.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OptionError, match=rf"no Dask scheduler could be reached there \(.*{told}"):
            deepscope.load_profile(folder, cache=False, scheduler=address)
        serving.join()


def test_a_cluster_without_workers_is_told(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "WORKERS_SECONDS", 1)
    empty = Cluster(tmp_path)
    try:
        with pytest.raises(OptionError, match="has no workers, and got none within 1 s; start some: dask worker"):
            deepscope.load_profile(folder, cache=False, scheduler=empty.address)
    finally:
        empty.end()


def test_without_the_extra_the_command_that_brings_it_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'deepscope\[dask\]'"):
        deepscope.load_profile(folder, cache=False, scheduler="tcp://127.0.0.1:9")


def test_an_interrupt_takes_back_what_has_not_begun(folder: Path, workers: Cluster) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deepscope.load_profile(folder, cache=False, scheduler=workers.address, progress=interrupt)
    with distributed.Client(workers.address, set_as_default=False) as client:
        for _ in range(100):
            if not (left := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))):
                break
            time.sleep(0.1)
        assert left == []


def test_dask_is_imported_where_it_is_asked_for_alone(folder: Path) -> None:
    code = (
        "import sys, deepscope; from deepscope.store.ranks import read_ranks\n"
        f"deepscope.load_profile({str(folder)!r}); read_ranks({str(folder)!r})\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
