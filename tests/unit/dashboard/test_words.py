"""Places and sentences are worded for the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import pytest

import built_profiles
from asking import Asking
from deepscope.dashboard.application import QUESTIONS
from deepscope.dashboard.html_file import OneProfile as HtmlProfile
from deepscope.dashboard.page_answer import in_page_words, place_words
from one_profile import OneProfile
from recorded_traces import OWN_TRACES


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", ""),
        ("/home/me/project/net.py", "net.py:7"),
        ("/home/me/project/models/net.py", "models/net.py:7"),
        ("/app/xDiT/xfuser/model_executor/pipelines/base_pipeline.py", "…/pipelines/base_pipeline.py:7"),
        ("C:\\users\\somebody\\documents\\projects\\net\\train.py", "…/net/train.py:7"),
        (f"/elsewhere/{'a' * 30}/{'b' * 30}.py", f"…/{'b' * 30}.py:7"),
        (f"/{'c' * 5000}", f"…{'c' * 72}:7"),
    ],
)
def test_places_keep_their_ends(path: str, words: str) -> None:
    assert place_words(path, 7, "/home/me/project") == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("26.1ms on rank 2 (140µs), 3s at most.", "26.1 ms on rank 2 (140 µs), 3 s at most."),
        ("+38%, -4%, 1.5e+03MiB", "+38 %, -4 %, 1.5e+03 MiB"),
        ("12.0MiB/s, 0B/s; 3.20/s", "12.0 MiB/s, 0 B/s; 3.20/s"),
        ("it is 38ms later, in llama-70B/train_2s.py:14", "it is 38 ms later, in llama-70B/train_2s.py:14"),
        ("80% of the A100 80GB PCIe's", "80 % of the A100 80GB PCIe's"),
        ("in 7B/net.py:3, runs/7B-chat/net.py:3, 8B.py:1", "in 7B/net.py:3, runs/7B-chat/net.py:3, 8B.py:1"),
    ],
)
def test_sentences_have_a_blank_before_units_and_names_stay_as_they_are(text: str, words: str) -> None:
    assert in_page_words(text) == words


JOINED = re.compile(r"(?<![\w./\\-])\d[\d.,]*(?:[nµm]?s|[KMGT]?i?B(?:/s)?|%)(?![\w/\\-])")
"""A number that touches its unit, outside a name."""


def sentences(answer: Any) -> Iterator[str]:
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from sentences(one)
    elif isinstance(answer, msgspec.Struct):
        for name in answer.__struct_fields__:
            yield from sentences(getattr(answer, name))


@pytest.mark.parametrize("question", ["header", "overview", "findings", "lines", "steps", "kernels", "compare", "line"])
def test_every_page_has_a_space_between_a_number_and_its_unit(question: str) -> None:
    profile = built_profiles.training()
    profile.trace.warnings = ["the recording took 673ms (2.5% of 26.9s) and 46.0KiB"]
    library = HtmlProfile(profile) if question == "header" else OneProfile(profile, old=built_profiles.training())
    asked: dict[str, Any] = {}
    if question == "compare":
        asked = {"baseline": "old"}
    if question == "line":
        costliest = max(profile.lines, key=lambda line: line.cost_ns)
        asked = {"file": costliest.file, "line": costliest.line}
    ask = QUESTIONS[question]
    answer = ask(library, get_type_hints(ask)["question"](**asked))
    told = list(sentences(answer.notes if question == "header" else answer))  # its facts name devices: an H100 80GB
    assert [one for one in told if JOINED.search(one)] == []
    if question == "header":
        assert "the recording took 673 ms (2.5 % of 26.9 s) and 46.0 KiB" in told


PAGES = ("header", "overview", "lines", "findings", "operators", "kernels", "modules", "steps", "distributed", "memory")
_TOGETHER = re.compile(r"(?<![\w./\\-])[+-]?\d[\d.,]*(?:[nµm]s|%|[KMGT]iB)(?![\w/\\-])")


def texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from texts(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one, key)
    elif isinstance(value, str) and key != "source":  # code stands as it was written
        yield value


@pytest.mark.parametrize("name", ["lightning-with-workers", "grafted-device"])
def test_no_page_writes_a_number_and_its_unit_in_one(name: str) -> None:
    ask = Asking(OWN_TRACES / f"{name}.json.gz")
    try:
        answers = {page: ask.status(page) for page in PAGES}
    finally:
        ask.library.close()
    told = [text for status, answer in answers.values() if status == 200 for text in texts(answer)]
    assert len(told) > 100
    assert [text for text in told if _TOGETHER.search(text)] == []
