"""Notifies of a `DataLoader`'s passes and batches, of `torch.save`, and of `model.eval()` and `model.train()`.

Torch notifies nobody of them, so these functions are wrapped while anybody listens. A wrapper of somebody else's over
ours stays where it is; ours then calls torch's own and notifies nobody.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch.utils.data import DataLoader

from deepscope.capture.dynamo import hide_modules
from deepscope.capture.notices import warn
from deepscope.capture.process_hooks import open_recorders
from deepscope.capture.process_hooks.open_recorders import own_work
from deepscope.capture.process_hooks.signals import comes_from_handler


class RunListener(Protocol):
    """What is called on the thread that it happens on; a method that raises is the last one that is called."""

    def opening(self, loader: Any) -> None:
        """A loader is about to make an iterator."""

    def opened(self, loader: Any, iterator: Any) -> None:
        """It has made it, or gives the one that it had."""

    def fetching(self, iterator: Any) -> None:
        """The next batch is asked for."""

    def fetched(self, iterator: Any) -> None:
        """There it is."""

    def exhausted(self, iterator: Any) -> None:
        """There is none any more."""

    def failed(self) -> None:
        """Opening or fetching has raised something else."""

    def saving(self) -> None:
        """`torch.save` begins."""

    def saved(self) -> None:
        """`torch.save` has ended."""

    def evaluating(self) -> None:
        """A model went into evaluation mode."""

    def training(self) -> None:
        """It went back into training mode."""

    def give_up(self) -> None:
        """One of these has raised: none of them is called again."""


_listeners: tuple[weakref.ref[RunListener], ...] = ()


class _Patch(NamedTuple):
    """A function in its place."""

    place: Any
    name: str
    original: Callable[..., Any]
    wrapper: Callable[..., Any]

    def take_out(self) -> bool:
        """Whether the place has its original again; it has not where somebody else has wrapped ours."""
        if vars(self.place).get(self.name) is not self.wrapper:
            return False
        setattr(self.place, self.name, self.original)
        return True


_patches: list[_Patch] = []


def listen(listener: RunListener) -> Callable[[], None]:
    """Tell `listener` of all that happens from here on, until what is returned is called, or nobody else has it."""
    global _listeners
    if not _listeners:
        hide_modules([sys.modules[__name__], open_recorders, sys.modules[type(listener).__module__]])
        _put_in()
    reference = weakref.ref(listener, _leave)
    _listeners = (*_listeners, reference)
    return functools.partial(_leave, reference)


def _leave(reference: weakref.ref[RunListener]) -> None:
    global _listeners
    _listeners = tuple(one for one in _listeners if one is not reference)
    if not _listeners:
        _take_out()


def _put_in() -> None:
    iterator: Any = getattr(torch.utils.data.dataloader, "_BaseDataLoaderIter", None)
    _wrap("__iter__", _wrapped_iter, DataLoader)
    _wrap("__next__", _wrapped_next, iterator)
    _wrap("eval", _wrapped_eval, torch.nn.Module)
    _wrap("train", _wrapped_train, torch.nn.Module)
    _wrap("save", _wrapped_save, torch, torch.serialization)  # both, so that it can still be pickled


def _wrap(name: str, wrap: Callable[[Any], Callable[..., Any]], *places: Any) -> None:
    original = vars(places[0]).get(name) if places[0] is not None else None
    if original is None or any(one.place is places[0] and one.name == name for one in _patches):
        return  # a torch without it; or ours is still there, below somebody else's
    wrapper = wrap(original)
    # As torch.compiler.disable marks a function: dynamo would otherwise compile what is in it.
    wrapper._torchdynamo_disable = True  # type: ignore[attr-defined]
    for place in places:
        if vars(place).get(name) is original:
            setattr(place, name, wrapper)
            _patches.append(_Patch(place, name, original, wrapper))


def _take_out() -> None:
    _patches[:] = [one for one in _patches if not one.take_out()]


@own_work
def _tell(name: str, *arguments: Any) -> None:
    for reference in _listeners:
        listener = reference()
        if listener is None:
            continue
        try:
            getattr(listener, name)(*arguments)
        except Exception as error:
            if comes_from_handler(error):
                raise
            _leave(reference)
            listener.give_up()
            warn("it will not be known what the time of the run went to", error)


def _wrapped_iter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(self: Any) -> Any:
        if not _listeners:
            return original(self)
        _tell("opening", self)
        try:
            iterator = original(self)
        except BaseException:
            _tell("failed")
            raise
        _tell("opened", self, iterator)
        return iterator

    return wrapper


def _wrapped_next(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(self: Any) -> Any:
        if not _listeners:
            return original(self)
        _tell("fetching", self)
        try:
            batch = original(self)
        except StopIteration:
            _tell("exhausted", self)
            raise
        except BaseException:
            _tell("failed")
            raise
        _tell("fetched", self)
        return batch

    return wrapper


def _wrapped_save(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        if not _listeners:
            return original(*arguments, **keywords)
        _tell("saving")
        try:
            return original(*arguments, **keywords)
        finally:
            _tell("saved")

    return wrapper


_evaluating: Callable[[], Any] | None = None
"""The module of which `eval` was called last, held weakly; None once its `train` was."""


def _wrapped_eval(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(self: Any) -> Any:
        global _evaluating
        found = original(self)
        if _listeners:
            _evaluating = weakref.ref(self)
            _tell("evaluating")
        return found

    return wrapper


def _wrapped_train(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(self: Any, mode: bool = True) -> Any:
        global _evaluating
        if _evaluating is not None and mode and _evaluating() is self:
            _evaluating = None
            _tell("training")
        return original(self, mode)

    return wrapper


def _after_fork() -> None:
    """A child's run is its own: nobody there is notified, and torch has its functions again."""
    global _listeners
    _listeners = ()
    _take_out()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
