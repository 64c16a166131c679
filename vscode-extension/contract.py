"""Writes the contracts in TypeScript: what commands and questions take and what they are answered with.

`src/server/contract.ts` is of the language server, `src/pages/contract.ts` of the dashboard. Neither is kept in git:
`scripts/setup` and each npm script make them. The source is this very tree: the annotations of the server's commands
and of the dashboard's questions, and the structs that these name.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec import inspect as shapes

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("lsp_server", "integrations")]

from deepscope.dashboard.application import QUESTIONS  # noqa: E402
from deepscope_lsp import answers, arguments  # noqa: E402
from deepscope_lsp.features.commands import COMMANDS  # noqa: E402
from deepscope_lsp.server import STATUS  # noqa: E402

SERVER = HERE / "src" / "server" / "contract.ts"
PAGES = HERE / "src" / "pages" / "contract.ts"
SERVER_HEAD = """\
/**
 * What the language server takes and answers: types, and readers that check answers at run time.
 *
 * Made by contract.py from lsp_server/deepscope_lsp; do not edit.
 */

import { dictionary, either, finite, flag, list, natural } from "../shape";
import { nothing, nullable, object, oneOf, text, type Reader } from "../shape";

/** A command that takes `Argument`. */
export interface Command<Argument, Answer> {
  readonly name: string;
  readonly answer: Reader<Answer>;
  /** Never there: it stands for the type. */
  readonly argument?: Argument;
}

function command<Argument, Answer>(name: string, answer: Reader<Answer>): Command<Argument, Answer> {
  return { name, answer };
}
"""
PAGES_HEAD = """\
/**
 * What the dashboard's pages ask and are answered: types, and readers that check answers at run time.
 *
 * Made by contract.py from integrations/deepscope/dashboard; do not edit.
 */

import { IMPORTED } from "../shape";

/** A question that takes `Asked`. */
export interface Ask<Asked, Answer> {
  readonly name: string;
  readonly answer: Reader<Answer>;
  /** Never there: it stands for the type. */
  readonly asked?: Asked;
}

function ask<Asked, Answer>(name: string, answer: Reader<Answer>): Ask<Asked, Answer> {
  return { name, answer };
}
"""


def main() -> None:
    """Writes the files; one that is right already keeps its time, so that nobody builds anew."""
    for target, text in {SERVER: contract(), PAGES: pages_contract()}.items():
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def contract() -> str:
    """The text of the language server's."""
    hints = {name: get_type_hints(run) for name, run in COMMANDS.items()}
    taken = _named(_structs(hint["argument"] for hint in hints.values()))
    results = _named(_structs([answers.Status, *(hint["return"] for hint in hints.values())]))
    parts = [
        SERVER_HEAD,
        *(_words(name, home) for name, home in HOMES.items()),
        *(_interface(one, is_argument=True) for one in taken),
        *(_interface(one) + _reader(one) for one in results),
        f'/** The notification of a changed status. */\nexport const STATUS_NOTIFICATION = "{STATUS}";\n',
        "export const commands = {\n"
        + "".join(_command(name, hint, inspect.getdoc(COMMANDS[name]) or "") for name, hint in hints.items())
        + "};\n",
    ]
    return "\n".join(parts)


def pages_contract() -> str:
    """The text of the dashboard's pages'."""
    hints = {name: get_type_hints(ask) for name, ask in QUESTIONS.items()}
    asked = _named(_structs(hint["question"] for hint in hints.values()))
    results = _named(_structs(hint["return"] for hint in hints.values()))
    homes = {sys.modules[one.cls.__module__] for one in [*asked, *results]}
    used = {
        name: home
        for home in sorted(homes, key=lambda home: home.__name__)
        for name, value in vars(home).items()
        if get_origin(value) is Literal
    }
    for name, home in used.items():
        WORDS[frozenset(get_args(getattr(home, name)))] = name
    body = [
        *(_words(name, home) for name, home in sorted(used.items())),
        *(_interface(one, is_argument=True) for one in asked),
        *(_interface(one) + _reader(one) for one in results),
        "export const questions = {\n"
        + "".join(
            _comment(inspect.getdoc(QUESTIONS[name]) or "", "  ")
            + f"  {name}: ask<{hint['question'].__name__}, {_type(answer := shapes.type_info(hint['return']))}>"
            + f'("{name}", {_read(answer)}),\n'
            for name, hint in hints.items()
        )
        + "};\n",
    ]
    text = "\n".join(body)
    readers = [name for name in READERS if re.search(rf"\b{name}\(|\b{name}\b[,)]", text)]
    return PAGES_HEAD.replace("IMPORTED", ", ".join([*readers, "text", "type Reader"])) + "\n" + text


def _structs(types: Iterable[Any]) -> Iterator[shapes.StructType]:
    """The structs that types are made of, each after those that it needs."""
    for one in types:
        yield from _structs_in(one if isinstance(one, shapes.Type) else shapes.type_info(one), ())


def _structs_in(kind: shapes.Type, above: tuple[type, ...]) -> Iterator[shapes.StructType]:
    if isinstance(kind, shapes.Metadata):
        yield from _structs_in(kind.type, above)
    elif isinstance(kind, shapes.StructType) and kind.cls not in above:
        for field in kind.fields:
            yield from _structs_in(field.type, (*above, kind.cls))
        yield kind
    elif isinstance(kind, shapes.ListType):
        yield from _structs_in(kind.item_type, above)
    elif isinstance(kind, shapes.DictType):
        yield from _structs_in(kind.value_type, above)
    elif isinstance(kind, shapes.UnionType):
        for member in kind.types:
            yield from _structs_in(member, above)


def _named(structs: Iterable[shapes.StructType]) -> list[shapes.StructType]:
    found: dict[str, shapes.StructType] = {}
    for one in structs:
        if found.setdefault(one.cls.__name__, one).cls is not one.cls:
            raise SystemExit(f"two structs have one name: {found[one.cls.__name__].cls} and {one.cls}")
    return list(found.values())


def _words(name: str, home: Any) -> str:
    listed = ", ".join(f'"{value}"' for value in get_args(getattr(home, name)))
    doc = _comment(_field_docs(home).get(name, ""))
    reader = _lower(name)
    return f"{doc}export const {reader} = oneOf({listed});\nexport type {name} = ReturnType<typeof {reader}>;\n"


def _interface(struct: shapes.StructType, *, is_argument: bool = False) -> str:
    docs = {name: text for base in reversed(struct.cls.__mro__) for name, text in _field_docs(base).items()}
    rows = [
        _comment(docs.get(field.name, ""), "  ")
        + f"  readonly {field.encode_name}{'?' if is_argument and not field.required else ''}: {_type(field.type)};\n"
        for field in struct.fields
    ]
    doc = _comment(inspect.getdoc(struct.cls) or "")
    if not rows:
        return f"{doc}export type {struct.cls.__name__} = Readonly<Record<string, never>>;\n"
    return f"{doc}export interface {struct.cls.__name__} {{\n{''.join(rows)}}}\n"


def _reader(struct: shapes.StructType) -> str:
    name = struct.cls.__name__
    rows = [f"  {field.encode_name}: {_read(field.type, struct.cls)},\n" for field in struct.fields]
    return f"export const {_lower(name)}: Reader<{name}> = object({{\n{''.join(rows)}}});\n"


def _command(name: str, hint: dict[str, Any], doc: str) -> str:
    answer = shapes.type_info(hint["return"])
    types = f"{hint['argument'].__name__}, {_type(answer)}"
    key = name.rpartition(".")[2]
    return _comment(doc, "  ") + f'  {key}: command<{types}>("{name}", {_read(answer)}),\n'


def _type(kind: shapes.Type) -> str:
    return _pair(kind)[0]


def _read(kind: shapes.Type, inside: type | None = None) -> str:
    return _pair(kind, inside)[1]


def _pair(kind: shapes.Type, inside: type | None = None) -> tuple[str, str]:
    """TypeScript's name of a type, and its reader; `inside` is the struct whose own reader is being made."""
    match kind:
        case shapes.Metadata():
            pair = _pair(kind.type, inside)
        case shapes.StructType():
            name = kind.cls.__name__
            reader = _lower(name)
            pair = name, f"(value, at) => {reader}(value, at)" if kind.cls is inside else reader
        case shapes.ListType():
            item, reader = _pair(kind.item_type, inside)
            pair = f"readonly {f'({item})' if ' ' in item else item}[]", f"list({reader})"
        case shapes.DictType():
            value, reader = _pair(kind.value_type, inside)
            pair = f"Readonly<Record<string, {value}>>", f"dictionary({reader})"
        case shapes.LiteralType():
            quoted = [f'"{value}"' for value in kind.values]
            words = WORDS.get(frozenset(kind.values))
            pair = (words, _lower(words)) if words else (" | ".join(quoted), f"oneOf({', '.join(quoted)})")
        case shapes.UnionType():
            pair = _union(kind, inside)
        case shapes.IntType(ge=int(ge)) if ge >= 0:
            pair = "number", "natural"
        case _:
            pair = PLAIN[type(kind)]
    return pair


def _union(kind: shapes.UnionType, inside: type | None) -> tuple[str, str]:
    members = dict(_pair(one, inside) for one in kind.types if not isinstance(one, shapes.NoneType))
    *others, last = members.values()
    reader = f"either({others[0]}, {last})" if others else last
    if any(isinstance(one, shapes.NoneType) for one in kind.types):
        return " | ".join([*members, "null"]), f"nullable({reader})"
    return " | ".join(members), reader


@cache
def _field_docs(home: Any) -> dict[str, str]:
    """The texts that stand below the names of a class or a module."""
    if home in {Struct, object} or home.__name__ == "_StructMixin":
        return {}
    body = ast.parse(inspect.getsource(home)).body
    if isinstance(home, type):
        assert isinstance(body[0], ast.ClassDef)
        body = body[0].body
    docs = {}
    for statement, after in pairwise(body):
        target: ast.expr | None = statement.target if isinstance(statement, ast.AnnAssign) else None
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            docs[target.id] = inspect.cleandoc(str(after.value.value))
    return docs


def _comment(text: str, indent: str = "") -> str:
    if not text:
        return ""
    if "\n" not in text:
        return f"{indent}/** {text} */\n"
    rows = [f"{indent} * {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"{indent}/**", *rows, f"{indent} */", ""])


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


READERS = ("dictionary", "either", "finite", "flag", "list", "natural", "nothing", "nullable", "object", "oneOf")
"""Of `src/shape.ts`."""
PLAIN: dict[type, tuple[str, str]] = {
    shapes.StrType: ("string", "text"),
    shapes.IntType: ("number", "finite"),
    shapes.FloatType: ("number", "finite"),
    shapes.BoolType: ("boolean", "flag"),
    shapes.NoneType: ("null", "nothing"),
}
HOMES = {
    name: home for home in (answers, arguments) for name, value in vars(home).items() if get_origin(value) is Literal
}
"""Where the language server names sets of words."""
WORDS = {frozenset(get_args(getattr(home, name))): name for name, home in HOMES.items()}
"""The sets of words that have a name of their own."""

if __name__ == "__main__":
    main()
