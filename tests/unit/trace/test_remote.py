"""Traces read through fsspec: archives, and stores that fail half way."""

import gc
import zipfile

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from deepscope.errors import MissingExtraError, NoTraceError, TraceError
from deepscope.trace.kineto.remote import open_remote
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def _data(events=2000):
    builder = TraceBuilder()
    for number in range(events):
        builder.op(f"aten::op{number}", number * 10, 5)
    return builder.dumps()


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("logs/a.pt.trace.json", _data())
    return path


def test_a_trace_in_an_archive_is_read_to_its_end(archive):
    assert len(read_trace(f"zip://logs/a.pt.trace.json::{archive}").events) == 2000


def test_an_open_file_keeps_the_archive_that_it_lies_in(archive):
    remote = open_remote(f"zip://logs/a.pt.trace.json::{archive}")
    fsspec.filesystem("zip", fo=str(archive)).clear_instance_cache()
    gc.collect()
    with remote.stream as stream:
        assert stream.read() == _data()


@pytest.mark.parametrize("error", [OSError("reset"), ValueError("closed"), RuntimeError("throttled"), TimeoutError()])
def test_whatever_a_store_raises_while_it_is_read_is_told_as_a_trace_error(monkeypatch, error):
    MemoryFileSystem().pipe("/runs/t.json", _data())

    class Failing:
        size = 9

        def read(self, size):
            raise error

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(MemoryFileSystem, "open", lambda self, *_, **__: Failing())
    words = str(error) or type(error).__name__
    with pytest.raises(TraceError, match=rf"memory://runs/t.json: cannot be read \({words}\);") as told:
        read_trace("memory://runs/t.json")
    assert told.value.__cause__ is error


def test_a_time_out_has_no_words_and_is_told_by_its_name(monkeypatch):
    def late(self, *_, **__):
        raise TimeoutError

    monkeypatch.setattr(MemoryFileSystem, "open", late)
    with pytest.raises(TraceError, match=r"cannot be read: TimeoutError$"):
        read_trace("memory://runs/t.json")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory://gone.json", NoTraceError),
        ("nosuch://a/b", TraceError),
        ("reference://x", TraceError),
        ("zip://x.json::/no/such.zip", NoTraceError),
    ],
)
def test_what_cannot_be_opened_is_told(url, kind):
    with pytest.raises(kind, match=url.split("://")[0]):
        read_trace(url)


def test_a_reader_that_is_not_installed_names_its_extra(monkeypatch):
    def missing(url):
        raise ImportError(url)

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingExtraError, match=r"s3:// is not installed; run: pip install 'deepscope\[s3\]'"):
        read_trace("s3://bucket/t.json")


def test_a_reason_of_many_lines_is_told_by_its_first_and_hdfs_names_the_way_that_needs_less(monkeypatch):
    def missing(url):
        raise OSError("Unable to load libjvm\\ndlopen(/usr/lib/jvm) failed" * 99)

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(TraceError) as told:
        read_trace("hdfs://namenode/t.json")
    assert str(told.value) == (
        "hdfs://namenode/t.json: cannot be read: OSError: Unable to load libjvm; "
        "hdfs:// needs Hadoop's libhdfs and Java, webhdfs://NAMENODE:9870/… needs neither"
    )
