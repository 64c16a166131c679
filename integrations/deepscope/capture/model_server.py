"""Servers of models (vLLM, SGLang) record themselves when they are asked over HTTP; their traces are waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from deepscope.errors import ControlError, OptionError

_SECONDS = 3.0
_ANSWER_S = 600.0
"""A server that writes a large trace answers late."""
WRITING_S = 600.0
"""So long a trace is waited for."""
_QUIET_S = 2.0
"""A trace that has not grown for so long is written."""
_EVERY_S = 0.25
_MOST_BYTES = 10_000
_NOT_PREPARED = (
    "the server has no profiler: start vLLM with --profiler-config "
    '\'{"profiler": "torch", "torch_profiler_dir": "FOLDER"}\' (SGLang needs nothing)'
)


@dataclass
class ModelServer:
    """One server: `url` as `http://host:port`, and the folder on this machine that its traces come into.

    Raises `OptionError` for a URL that is none of HTTP.
    """

    url: str
    folder: Path
    show: Callable[[str], None] = lambda _: None
    """Gets each line of progress."""
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise OptionError("url", self.url, "not the address of a server, as http://localhost:8000")
        self.url = self.url.rstrip("/")

    def record(self, *, steps: int | None = None, seconds: float | None = None) -> list[Path]:
        """Have it record so many steps where it counts them, else so many seconds (3); returns its new traces.

        Raises:
            ControlError: it does not answer, cannot record, or wrote nothing into the folder.
        """
        if steps is not None and not self._is_sglang():
            raise ControlError(f"{self.url}: this server counts no steps; record by the clock, with --time")
        known = dict(self._traces())
        wanted: dict[str, Any] = {"output_dir": str(self.folder.resolve())}
        self._post("start_profile", wanted if steps is None else wanted | {"num_steps": steps})
        if steps is None:
            seconds = _SECONDS if seconds is None else seconds
            try:
                self.show(f"{self.url} records for {seconds:g} s")
                self.sleep(seconds)
            finally:  # Ctrl-C, too: nobody else ends it
                self._post("stop_profile", {})
        return self._written(known)

    def _is_sglang(self) -> bool:
        for path in ("get_server_info", "server_info"):
            try:
                with self._open(Request(f"{self.url}/{path}")) as response:  # noqa: S310 - http alone, checked above
                    return response.status == 200
            except HTTPError:
                continue
        return False

    def _post(self, path: str, body: dict[str, Any]) -> None:
        request = Request(  # noqa: S310 - as above
            f"{self.url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with self._open(request) as response:
                response.read(_MOST_BYTES)
        except HTTPError as error:
            words = _NOT_PREPARED if error.code == 404 else error.read(_MOST_BYTES).decode("utf-8", "replace").strip()
            raise ControlError(f"{self.url}/{path}: {words or error.reason}") from None

    def _open(self, request: Request) -> HTTPResponse:
        try:
            response: HTTPResponse = urlopen(request, timeout=_ANSWER_S)  # noqa: S310 - as above
        except HTTPError:
            raise
        except (URLError, HTTPException, OSError) as error:
            raise ControlError(f"{self.url}: no server answers there ({getattr(error, 'reason', error)})") from None
        return response

    def _written(self, known: Mapping[Path, int]) -> list[Path]:
        """The traces that are new beside those that are `known` with their sizes, once none of them grows any more."""
        self.show(f"waiting for traces in {self.folder}")
        deadline = time.monotonic() + WRITING_S
        before: dict[Path, int] = {}
        since = time.monotonic()
        while True:
            now = {path: size for path, size in self._traces() if known.get(path) != size}
            if now != before:
                before, since = now, time.monotonic()
            elif now and time.monotonic() - since >= _QUIET_S:
                return sorted(now)
            if time.monotonic() > deadline:
                raise ControlError(f"{self.folder}: the server wrote no trace here; name its folder with --folder")
            self.sleep(_EVERY_S)

    def _traces(self) -> Iterator[tuple[Path, int]]:
        """What may be a trace of the server's: also below a folder for each recording, as SGLang makes them."""
        for pattern in ("*.json", "*.json.gz", "*/*.json", "*/*.json.gz"):
            for path in self.folder.glob(pattern):
                if path.is_file():
                    yield path, path.stat().st_size
