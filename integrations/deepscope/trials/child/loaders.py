"""The data loaders of a program: how they are set, and which samples they ask for."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch
from torch.utils.data import IterableDataset, dataloader

from deepscope.trials.messages import LoaderFacts

_DEPTH = 3


class Loaders:
    """Facts of each loader that is iterated over, in order, and hashes of what its first iterator asks for."""

    def __init__(self) -> None:
        self._loaders: dict[int, tuple[Any, LoaderFacts, list[int]]] = {}

    def start(self) -> None:
        """Wrap torch's iterators, which every loader makes."""
        kind: Any = dataloader._BaseDataLoaderIter
        begin, next_index, next_batch = kind.__init__, kind._next_index, kind.__next__
        loaders = self._loaders

        def made(iterator: Any, loader: Any) -> None:
            entry = loaders.setdefault(id(loader), (loader, loader_facts(loader), []))
            entry[1].iterators += 1
            iterator._deepscope_entry = entry
            begin(iterator, loader)

        def asked(iterator: Any) -> Any:
            index = next_index(iterator)
            _, facts, hashes = iterator._deepscope_entry
            if facts.iterators == 1:
                hashes.append(index_hash(index))
            return index

        def given(iterator: Any) -> Any:
            batch = next_batch(iterator)
            facts = iterator._deepscope_entry[1]
            facts.batches += 1
            if facts.batches == 1 and not facts.pin_memory:
                facts.device = next((one.device.type for one in tensors(batch)), "cpu")
            return batch

        kind.__init__, kind._next_index, kind.__next__ = made, asked, given

    def facts(self) -> list[LoaderFacts]:
        """Of all loaders that were iterated over."""
        return [facts for _, facts, _ in self._loaders.values()]

    def samples(self) -> list[list[int]]:
        """The hashes of each loader's batches."""
        return [hashes for _, _, hashes in self._loaders.values()]


def index_hash(index: Any) -> int:
    """Of a batch's indices, the same in every process; 0 for what has no hash."""
    try:
        return hash(tuple(index) if isinstance(index, list) else index)
    except TypeError:
        return 0


def loader_facts(loader: Any) -> LoaderFacts:
    """How a loader is set, and what workers it could have."""
    context = loader.multiprocessing_context
    method = context.get_start_method() if context is not None else multiprocessing.get_start_method()
    dataset = loader.dataset
    is_iterable = isinstance(dataset, IterableDataset)
    return LoaderFacts(
        dataset=type(dataset).__name__,
        workers=loader.num_workers,
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        prefetch_factor=loader.prefetch_factor,
        is_iterable=is_iterable,
        is_sharded=is_iterable and "get_worker_info" in set(_names(type(dataset))),
        start_method=method,
        unpicklable="" if method == "fork" or loader.num_workers else _unpicklable(loader),
        device=next((one.device.type for one in tensors(vars(dataset)) if one.device.type != "cpu"), "cpu")
        if hasattr(dataset, "__dict__")
        else "cpu",
    )


def _unpicklable(loader: Any) -> str:
    for name in ("dataset", "collate_fn", "worker_init_fn"):
        try:
            pickle.dumps(getattr(loader, name))
        except Exception as error:  # noqa: BLE001  the user's own `__reduce__` may raise anything
            return f"its {name} cannot be pickled ({type(error).__name__}: {error})"
    return ""


def _names(kind: type) -> Iterator[str]:
    """The names that a class's own functions use."""
    todo: list[Any] = [
        getattr(thing, "__code__", None)
        for one in kind.__mro__
        if not one.__module__.startswith("torch.")
        for thing in vars(one).values()
    ]
    while todo:
        code = todo.pop()
        if isinstance(code, CodeType):
            yield from code.co_names
            todo += code.co_consts


def tensors(thing: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Tensors in nested lists, tuples and dicts."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif depth and isinstance(thing, dict):
        for one in thing.values():
            yield from tensors(one, depth - 1)
    elif depth and isinstance(thing, (list, tuple)):
        for one in thing[:64]:
            yield from tensors(one, depth - 1)
