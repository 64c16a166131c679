"""Every question that the pages can ask, and from a question's address to its answer: the same for every server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

import msgspec

from deepscope.dashboard.background import NotYetError
from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import Question, encoded
from deepscope.dashboard.pages.compare import compare
from deepscope.dashboard.pages.distributed import distributed, rank
from deepscope.dashboard.pages.findings import finding_page, findings
from deepscope.dashboard.pages.flame import flame
from deepscope.dashboard.pages.header import header, news, runs
from deepscope.dashboard.pages.line_details import line
from deepscope.dashboard.pages.lines import file, line_list, lines
from deepscope.dashboard.pages.memory import memory, memory_at, memory_curve, memory_snapshot
from deepscope.dashboard.pages.operators import kernel, kernels, modules, operator, operator_variants, operators
from deepscope.dashboard.pages.overview import overview
from deepscope.dashboard.pages.steps import steps
from deepscope.dashboard.pages.timeline import (
    timeline,
    timeline_durations,
    timeline_line,
    timeline_search,
    timeline_selection,
    timeline_slice,
    timeline_window,
)
from deepscope.errors import DeepScopeError, NoTraceError, OptionError, in_python
from deepscope.printable import printable

QUESTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        runs,
        news,
        header,
        overview,
        lines,
        line_list,
        file,
        line,
        flame,
        memory,
        memory_at,
        memory_curve,
        memory_snapshot,
        distributed,
        rank,
        findings,
        compare,
        finding_page,
        operators,
        operator,
        operator_variants,
        kernels,
        kernel,
        modules,
        steps,
        timeline,
        timeline_window,
        timeline_slice,
        timeline_selection,
        timeline_search,
        timeline_line,
        timeline_durations,
    )
}
"""By name: functions of a `Library` and a `Question`, whose annotations say what they take and answer."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: a status of HTTP and JSON."""

    status: int
    body: bytes


class Application:
    """Answers questions about what a library has.

    An answer has status 200. While a trace is being read the status is 202 and the body `{"progress": {"done": …,
    "total": …}}`, in bytes. A failure has the status 400 (of the question), 404 (nothing of that name, no trace), 422
    (of the trace) or 500, and the body `{"error": "…"}`.
    """

    def __init__(self, library: Library) -> None:
        self.library = library

    def answer(self, name: str, query: Mapping[str, str]) -> Reply:
        """Answers the question `name` with the words of its query."""
        ask = QUESTIONS.get(name)
        if ask is None:
            return _failure(404, f"no such question: {name[:100]}")
        try:
            question = msgspec.convert(dict(query), question_type(name), strict=False)
            reply = Reply(200, encoded(ask(self.library, question)))
        except NotYetError as error:
            reply = Reply(202, msgspec.json.encode({"progress": {"done": error.done, "total": error.total}}))
        except (OverflowError, UnicodeEncodeError):
            reply = _failure(400, "there is a number or a letter in the question that no trace can have")
        except NoTraceError as error:
            reply = _failure(404, error.message(_named))
        except OptionError as error:
            reply = _failure(400, error.message(_named))
        except msgspec.ValidationError as error:
            reply = _failure(400, str(error))
        except DeepScopeError as error:
            reply = _failure(422, error.message(_named))
        except MemoryError:
            reply = _failure(422, "not enough memory for this trace")
        except Exception as error:  # noqa: BLE001  the server goes on whatever a trace does to one page
            _LOG.exception("%s could not be answered", name)
            reply = _failure(500, f"{type(error).__name__}: {error}")
        return reply


@cache
def question_type(name: str) -> type[Question]:
    """What a question takes."""
    kind: type[Question] = get_type_hints(QUESTIONS[name])["question"]
    return kind


def _named(name: str, value: object) -> str:
    """An option in the words of those who look at pages."""
    return "deepscope view --partial" if name == "partial" else in_python(name, value)


def _failure(status: int, message: str) -> Reply:
    return Reply(status, msgspec.json.encode({"error": printable(message)[:2000]}))
