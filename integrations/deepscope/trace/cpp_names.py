"""Names of C++ functions as compilers write them, taken apart: return type, qualified name, template and arguments."""

from __future__ import annotations

import re
from string import ascii_letters, digits

_ENDS = frozenset(f"{ascii_letters}{digits}_>)")
"""Characters that a function's name, its template's arguments, or `operator()`, may end with."""
_TOKENS = re.compile(r"\boperator\s*(?:\(\)|->\*?|<<=?|>>=?|<=>|[<>]=?)|->|[<>() ]")
_TYPE = re.compile(
    r"(?:(?:static|const|unsigned|signed|void|bool|char|short|int|long|float|double|auto)\b[ *&]*)+|.*::type"
)
_BEHIND = (" ", "::", "[", "(", ".")
"""What may follow a function's arguments: qualifiers, a lambda within it, a clone's name."""


def function_of(text: str) -> str:
    """A function's qualified name with its template's arguments; what is no C++ function stays as it is.

    Parentheses decide before `<` and `>`: in `std::enable_if<((8) > (0)), void>::type f<8>(int)` one `>` compares.
    """
    begin, end, close = _parts(text)
    if text[close:] and not text[close:].startswith(_BEHIND):
        return text
    before = text[:begin].strip()
    if not (_TYPE.fullmatch(before) or (end < len(text) and ("::" in before or "<" in before))):
        begin = 0
    return text[begin:end].strip()


def _parts(text: str) -> tuple[int, int, int]:
    """Where the name begins and ends, and where its arguments end."""
    open_: list[str] = []
    begin, end = 0, -1
    for token in _TOKENS.finditer(text):
        letter, at = token[0], token.start()
        if letter == " ":
            begin = at + 1 if not open_ and end < 0 else begin
        elif letter == "<":
            open_.append(letter)
        elif letter == ">":
            if open_ and open_[-1] == "<":
                open_.pop()
        elif letter == "(":
            if not open_ and end < 0 and text[at - 1 : at] in _ENDS and not text.endswith("decltype", 0, at):
                end = at
            open_.append(letter)
        elif letter == ")":
            while open_ and open_.pop() != "(":
                pass
            if end >= 0 and not open_:
                return begin, end, token.end()
    return begin, len(text) if end < 0 else end, len(text)


def without_templates(text: str) -> str:
    """A qualified name without the arguments of its templates."""
    kept, depth, at = [], 0, 0
    for token in _TOKENS.finditer(text):
        if token[0] in "<>":
            if depth == 0:
                kept.append(text[at : token.start()])
            depth = max(depth + (1 if token[0] == "<" else -1), 0)
            at = token.end()
    return "".join([*kept, text[at:] if depth == 0 else ""])
