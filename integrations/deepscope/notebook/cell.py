"""The body of a cell under a magic, run so that its lines are those of the cell."""

from __future__ import annotations

import ast
import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


_APART = "# recorded by DeepScope"


class MagicCell:
    """Python that stands in a cell behind a magic: the lines below it, or the rest of its line.

    IPython compiles what stands below `%%time` as a text of its own, whose lines are in no cell. Here they are compiled
    under the cell's name with their numbers in it, and the cell's whole text is what a traceback and a trace show.

    Raises:
        SyntaxError: it is no Python.
    """

    def __init__(self, shell: InteractiveShell, body: str, text: str) -> None:
        self._shell = shell
        self.text = text
        """The whole cell."""
        number = getattr(shell.compile, "_filename_map", {}).get(self.caller, shell.execution_count)
        self.file: str = shell.compile.cache(text, number, raw_code=f"{text}\n{_APART}")
        """What Python calls it: not as the call of the magic, which stands in the same cell and is no user's work."""
        python = shell.transform_cell(body)  # without empty lines at its begin
        tree = shell.transform_ast(shell.compile.ast_parse(python, self.file))
        ast.increment_lineno(tree, text.rstrip().count("\n") - python.rstrip().count("\n"))
        self._tree: ast.Module = tree
        last = tree.body[-1] if tree.body else None
        self._last = last.value if isinstance(last, ast.Expr) else None
        if self._last is not None:
            tree.body.pop()

    def run(self) -> Any:
        """Runs it in the user's namespace; returns the value of an expression that ends it, as a cell has one."""
        __tracebackhide__ = True
        names = self._shell.user_global_ns, self._shell.user_ns
        exec(self._compiled(self._tree, "exec"), *names)  # noqa: S102
        if self._last is None:
            return None
        return eval(self._compiled(ast.Expression(self._last), "eval"), *names)  # noqa: S307

    @property
    def caller(self) -> str:
        """What Python calls the text that calls the magic."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals is not self._shell.user_global_ns:
            frame = frame.f_back
        return "" if frame is None else frame.f_code.co_filename

    def _compiled(self, tree: ast.Module | ast.Expression, mode: str) -> CodeType:
        code: CodeType = compile(tree, self.file, mode, self._shell.compile.flags, dont_inherit=True)
        return code
