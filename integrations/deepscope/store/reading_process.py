"""A process that reads traces for another one: requests in, records out."""

from __future__ import annotations

import msgspec

from deepscope.processes import Told, serve
from deepscope.store.remote_settings import using
from deepscope.store.requests import Asked, answer

__all__: list[str] = []


def _read(body: bytes, told: Told) -> bytes:
    asked = msgspec.msgpack.decode(body, type=Asked)
    with using(asked.settings):
        return answer(asked.request, told)


if __name__ == "__main__":
    serve(_read)
