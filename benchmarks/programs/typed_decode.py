"""The least that any reader has to do: unpacks a trace and decodes the fields of its events that are needed.

Typed records, decoded piece by piece and let go: nothing is gathered, joined or summed up.

Usage: typed_decode.py TRACE
"""

import gc
import sys
from pathlib import Path

import msgspec

try:
    from isal import igzip as gzip
except ImportError:
    import gzip

_PIECE_BYTES = 1 << 20


class Args(msgspec.Struct, gc=False):
    external_id: int | str | None = msgspec.field(default=None, name="External id")
    sequence: int | str | None = msgspec.field(default=None, name="Sequence number")
    fwd_thread: int | str | None = msgspec.field(default=None, name="Fwd thread id")
    correlation: int | str | None = None
    device: int | str | None = None
    stream: int | str | None = None
    size_bytes: int | str | None = msgspec.field(default=None, name="bytes")
    shapes: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    address: int | str | None = msgspec.field(default=None, name="Addr")
    allocated_bytes: int | str | None = msgspec.field(default=None, name="Bytes")


class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0
    dur: float = 0
    id: int | str | None = None
    args: Args | None = None


def main(path: Path) -> int:
    """Returns how many events the trace has; it must be one of `larger_trace.py`, one event a line."""
    gc.disable()
    decode = msgspec.json.Decoder(list[Event]).decode
    count = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        rest = file.readline() and b""
        while piece := file.read(_PIECE_BYTES):
            whole, _, rest_of_line = (rest + piece).rpartition(b",\n")
            count += len(decode(b"[" + whole + b"]")) if whole else 0
            rest = rest_of_line
        return count + len(decode(b"[" + rest.rpartition(b"]")[0] + b"]"))


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
