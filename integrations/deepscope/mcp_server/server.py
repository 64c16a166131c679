"""The server: its tools, each error as a message that the assistant can act on, and stdio as its transport."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from deepscope.errors import DeepScopeError, NoTraceError, in_python
from deepscope.mcp_server.answers import LONGEST, NOTICE, ToolAnswer
from deepscope.mcp_server.program_tools import ProgramTools
from deepscope.mcp_server.read_tools import ReadTools
from deepscope.mcp_server.served_folders import RunReader, ServedFolders
from deepscope.printable import printable
from deepscope.report.terminal import cut_end

INSTRUCTIONS = f"""DeepScope says which line of a PyTorch training the time goes to. Do not guess from the source: call
overview, read the verdict, open its line with line_detail, read that source, change one thing, prove it. A share or a
saving is an estimate until `verify` or `compare` shows it; unknown is not zero. A `next` that is a command is for the
shell, or for record, try_remedy and verify where these are listed. {NOTICE}"""


def make_server(folders: Sequence[str], *, allow_run: bool = False) -> MCPServer[Any]:
    """The server of the runs in some folders, with the tools that run programs only where they are allowed.

    Raises:
        TraceError: a folder is a remote one.
    """
    served = ServedFolders(folders)
    server: MCPServer[Any] = MCPServer(
        "deepscope", instructions=INSTRUCTIONS, version=version("deepscope"), log_level="WARNING"
    )
    reader = RunReader(served)
    read = ReadTools(served, reader)
    for ask in (read.list_runs, read.overview, read.lines, read.line_detail, read.findings, read.compare, read.ranks):
        server.add_tool(_tool(ask), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    if allow_run:
        programs = ProgramTools(served, reader)
        for act in (programs.record, programs.try_remedy, programs.verify):
            server.add_tool(_tool(act), annotations=ToolAnnotations(read_only_hint=False, open_world_hint=True))
    return server


def serve(folders: Sequence[str], *, allow_run: bool = False) -> None:
    """Serves one client over standard input and output until it goes; logs go to standard error."""
    make_server(folders, allow_run=allow_run).run("stdio")


def _tool(ask: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that answers as the schema of its return annotation says, and as the same JSON in a text."""
    signature = inspect.signature(ask, eval_str=True)

    async def call(**arguments: Any) -> CallToolResult:
        try:
            if inspect.iscoroutinefunction(ask):
                answer: ToolAnswer = await ask(**arguments)
            else:
                answer = await anyio.to_thread.run_sync(partial(ask, **arguments))
        except (DeepScopeError, MemoryError) as error:
            raise ToolError(_message(error)) from error
        return CallToolResult(
            content=[TextContent(type="text", text=answer.model_dump_json())],
            structured_content=answer.model_dump(mode="json"),
        )

    call.__name__, call.__doc__ = ask.__name__, inspect.getdoc(ask)
    returned = Annotated[CallToolResult, signature.return_annotation]
    call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call


def _message(error: DeepScopeError | MemoryError) -> str:
    """What went wrong and what to call instead, printable and bounded."""
    if not isinstance(error, DeepScopeError):
        return "not enough memory for this trace"
    hint = "; list_runs shows the runs that there are" if isinstance(error, NoTraceError) else ""
    return cut_end(printable(error.message(_as_argument)), LONGEST) + hint


def _as_argument(name: str, value: object) -> str:
    """An option as an argument of a tool; what no tool has, as the command has it."""
    return "`deepscope report PATH --partial`" if name == "partial" else in_python(name, value)
