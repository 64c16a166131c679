"""Mutations of a trace's bytes, before and after they are compressed."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable

__all__ = ["damage_file", "damage_text"]

Damage = Callable[[random.Random, bytes], bytes]

_RAW = [
    b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\0", b"\x1f\x8b", b"\xef\xbb\xbf", b'"', b"\\", b"\\u", b"\\ud800", b"{",
    b"}", b"[", b"]", b",", b":", b"NaN", b"Infinity", b"-inf", b"nan(0x8)", b"1e999", b"-", b"01", b"//", b"/* */",
    b"'", b"]}", b"}{", b"null",
]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_KEY = re.compile(rb'"(?:ph|cat|name|pid|tid|ts|dur|id|args|traceEvents|deepscope|correlation|scopes|files)":')


def damage_text(dice: random.Random, data: bytes) -> tuple[bytes, list[str]]:
    """The JSON, damaged or (mostly) not, and what was done."""
    done = []
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2, 4])):
        damage = dice.choice(_TEXT)
        data = damage(dice, data)
        done.append(damage.__name__.strip("_"))
    return data, done


def damage_file(dice: random.Random, data: bytes) -> tuple[bytes, str]:
    """The file's bytes, compressed in some way or not at all, and how."""
    damage = dice.choice(_FILE)
    return damage(dice, data), damage.__name__.strip("_")


def _at(dice: random.Random, data: bytes) -> int:
    return dice.randrange(len(data) + 1)


def _something_put_in(dice: random.Random, data: bytes) -> bytes:
    at = _at(dice, data)
    return data[:at] + dice.choice(_RAW) + data[at:]


def _bytes_replaced(dice: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice([1, 1, 5, 50])):
        if changed:
            changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _a_stretch_left_out(dice: random.Random, data: bytes) -> bytes:
    at = _at(dice, data)
    return data[:at] + data[at + dice.choice([1, 2, 30, 3000]) :]


def _a_stretch_again(dice: random.Random, data: bytes) -> bytes:
    at, size = _at(dice, data), dice.choice([1, 30, 3000])
    return data[: at + size] + data[at:]


def _cut(dice: random.Random, data: bytes) -> bytes:
    return data[: _at(dice, data)]


def _a_number(dice: random.Random, data: bytes) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    match = dice.choice(found)
    number = dice.choice(
        [
            b"1" * 19,
            b"9" * 30,
            b"1" * 4000,
            b"-0",
            b"1E400",
            b"-1e400",
            b"0.1e-400",
            b"1e18",
            b"4611686018427387.904",
            b"NaN",
        ]
    )
    return data[: match.start()] + number + data[match.end() :]


def _a_key_twice(dice: random.Random, data: bytes) -> bytes:
    found = list(_KEY.finditer(data))
    if not found:
        return data
    match = dice.choice(found)
    value = dice.choice([b"1", b"null", b'"x"', b"[]", b"{}", b"-5", b"1e30"])
    return data[: match.start()] + match[0] + value + b"," + data[match.start() :]


def _depth(dice: random.Random, data: bytes) -> bytes:
    at, levels = _at(dice, data), dice.choice([10, 900, 1100, 100_000])
    opened, closed = dice.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return (
        data[:at] + opened * levels + b"1" * dice.randrange(2) + closed * dice.choice([levels, levels, 0]) + data[at:]
    )


def _blanks(dice: random.Random, data: bytes) -> bytes:
    at = dice.choice([0, _at(dice, data), len(data)])
    return (
        data[:at]
        + dice.choice([b" ", b"\n", b"\t\r\n", b"\0", b",", b"{", b'"']) * dice.choice([1, 1000, 100_000])
        + data[at:]
    )


def _plain(dice: random.Random, data: bytes) -> bytes:
    return data


def _gzipped(data: bytes) -> bytes:
    """The same bytes each time: without the time of day."""
    return gzip.compress(data, 1, mtime=0)


def _gzip(dice: random.Random, data: bytes) -> bytes:
    return _gzipped(data)


def _members(dice: random.Random, data: bytes) -> bytes:
    at = _at(dice, data)
    return _gzipped(data[:at]) + _gzipped(b"") * dice.randrange(3) + _gzipped(data[at:])


def _padded_gzip(dice: random.Random, data: bytes) -> bytes:
    return _gzipped(data) + dice.choice([b"\0" * 700, b"garbage", b"\x1f\x8b", b"\x1f", _gzipped(data)[:9]])


def _cut_gzip(dice: random.Random, data: bytes) -> bytes:
    return _cut(dice, _gzipped(data))


def _damaged_gzip(dice: random.Random, data: bytes) -> bytes:
    return _bytes_replaced(dice, _gzipped(data))


def _gzip_twice(dice: random.Random, data: bytes) -> bytes:
    return _gzipped(_gzipped(data))


def _small_bomb(dice: random.Random, data: bytes) -> bytes:
    at = dice.choice([0, _at(dice, data), len(data)])
    return _gzipped(data[:at]) + _gzipped(dice.choice([b" ", b"[", b"\0", b"{}"]) * 300_000) + _gzipped(data[at:])


_TEXT: list[Damage] = [
    _something_put_in, _something_put_in, _bytes_replaced, _a_stretch_left_out, _a_stretch_again, _cut, _a_number,
    _a_number, _a_key_twice, _a_key_twice, _depth, _blanks,
]  # fmt: skip
_FILE: list[Damage] = [
    *[_plain] * 12,
    *[_gzip] * 4,
    _members,
    _members,
    _padded_gzip,
    _cut_gzip,
    _damaged_gzip,
    _gzip_twice,
    _small_bomb,
]
