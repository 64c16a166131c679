"""Snapshots of torch's memory, made as torch's caching allocator and `torch/csrc/cuda/Module.cpp` make them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SMALL_SEGMENT, LARGE_SEGMENT, ROUND = 2 << 20, 20 << 20, 512
Frames = list[dict[str, Any]]


def frames(*places: tuple[str, int, str]) -> Frames:
    """A stack, innermost first."""
    return [{"name": name, "filename": file, "line": line} for file, line, name in places]


def of_line(line: int, file: str = "/home/me/train.py") -> Frames:
    """A stack as torch records it: the allocator's frames, torch's own Python, and the user's line."""
    return frames(
        ("??", 0, "torch::unwind::unwind()"),
        ("CUDACachingAllocator.cpp", 0, "c10::cuda::CUDACachingAllocator::Native::malloc"),
        ("??", 0, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"),
        ("/usr/lib/python3/dist-packages/torch/nn/functional.py", 7, "linear"),
        ("/usr/local/src/python/Python/ceval.c", 5945, "do_call_core"),
        (file, line, "step"),
        ("/home/me/main.py", 1, "<module>"),
    )


BACKWARD = frames(
    ("??", 0, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"),
    ("??", 0, "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)"),
)


@dataclass(eq=False)
class Piece:
    """A block of a segment."""

    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: Frames = field(default_factory=list)


class Allocator:
    """torch's caching allocator, on one device: best fit, splits, merges, and a ring of `max_entries` entries."""

    def __init__(self, max_entries: int = 1 << 60, device: int = 0) -> None:
        self.entries: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.segments: list[list[Piece]] = []
        self.now_us = 1_700_000_000_000_000
        self._max_entries, self._device, self._next = max_entries, device, 0x7F0000000000

    def alloc(self, size: int, stack: Frames, metadata: str = "") -> Piece:
        """Of `size` bytes."""
        rounded = max(ROUND, -(-size // ROUND) * ROUND)
        free = [one for pieces in self.segments for one in pieces if one.state == "inactive" and one.size >= rounded]
        piece = min(free, key=lambda one: (one.size, one.address)) if free else self._segment(rounded, stack)
        pieces = next(pieces for pieces in self.segments if piece in pieces)
        if piece.size > rounded:
            pieces.insert(pieces.index(piece) + 1, Piece(piece.address + rounded, piece.size - rounded))
            piece.size = rounded
        piece.requested, piece.state, piece.frames = size, "active_allocated", stack
        self._note("alloc", piece.address, size, stack, metadata)
        return piece

    def free(self, piece: Piece, *, completed: bool = True) -> None:
        """`completed=False`: another stream still uses it."""
        self._note("free_requested", piece.address, piece.requested, of_line(999, "/home/me/release.py"))
        piece.state = "active_pending_free"
        if completed:
            self.complete(piece)

    def complete(self, piece: Piece) -> None:
        """Every stream is done with it."""
        self._note("free_completed", piece.address, piece.requested, of_line(999, "/home/me/release.py"))
        piece.state, piece.requested, piece.frames = "inactive", 0, []
        pieces = next(pieces for pieces in self.segments if piece in pieces)
        at = pieces.index(piece)
        for neighbour in (pieces[at + 1 : at + 2], pieces[at - 1 : at] if at else []):
            if neighbour and neighbour[0].state == "inactive":
                piece.address = min(piece.address, neighbour[0].address)
                piece.size += neighbour[0].size
                pieces.remove(neighbour[0])

    def fail(self, size: int, device_free: int, stack: Frames) -> None:
        """An allocation for which the device has no room."""
        self._note("oom", device_free, size, stack)

    def annotate(self, name: str, stage: str) -> None:
        """`START` or `END` of a `record_function`."""
        self.now_us += 1
        self.annotations.append({"stage": stage, "name": name, "device": self._device, "time_us": self.now_us})

    def empty_cache(self) -> None:
        """Segments without a live block go back to the device."""
        for pieces in [one for one in self.segments if len(one) == 1 and one[0].state == "inactive"]:
            self._note("segment_free", pieces[0].address, pieces[0].size, [])
            self.segments.remove(pieces)

    def snapshot(self) -> dict[str, Any]:
        """As `torch.cuda.memory._snapshot` returns it."""
        return {
            "segments": [self._as_segment(pieces) for pieces in self.segments],
            "device_traces": [[] for _ in range(self._device)] + [self.entries[-self._max_entries :]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False, "max_split_size": -1},
            "external_annotations": self.annotations,
        }

    def _segment(self, size: int, stack: Frames) -> Piece:
        whole = SMALL_SEGMENT if size <= 1 << 20 else max(LARGE_SEGMENT, -(-size // (2 << 20)) * (2 << 20))
        piece = Piece(self._next, whole)
        self._next += 2 * whole
        self.segments.append([piece])
        self._note("segment_alloc", piece.address, whole, stack)
        return piece

    def _note(self, action: str, address: int, size: int, stack: Frames, metadata: str = "") -> None:
        self.now_us += 1
        where = "device_free" if action == "oom" else "addr"
        entry = {"action": action, where: address, "size": size, "stream": 0, "time_us": self.now_us, "frames": stack}
        self.entries.append({**entry, "compile_context": "N/A", "user_metadata": metadata})

    def _as_segment(self, pieces: list[Piece]) -> dict[str, Any]:
        live = [one for one in pieces if one.state == "active_allocated"]
        return {
            "device": self._device,
            "address": pieces[0].address,
            "total_size": sum(one.size for one in pieces),
            "allocated_size": sum(one.size for one in live),
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {
                    "address": one.address,
                    "size": one.size,
                    "requested_size": one.requested,
                    "state": one.state,
                    "frames": one.frames,
                }
                for one in pieces
            ],
        }


def write(path: Path, content: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Path:
    """As `torch.cuda.memory._dump_snapshot` writes it."""
    path.write_bytes(pickle.dumps(content, protocol))
    return path
