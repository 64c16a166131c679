"""The server over TCP and a WebSocket, its command lines, and its end."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lsp_editor import PATIENCE, Editor, begin, editing, run
from lsp_profiles import SOURCE, record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SOURCE, encoding="utf-8")
    record(folder)
    return folder


@pytest.mark.parametrize("transport", ["--tcp", "--ws"])
def test_the_server_answers_over_the_network(root: Path, tmp_path: Path, transport: str) -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "deepscope_lsp", transport, "--port", "0", "--log-level", "debug",
            stderr=asyncio.subprocess.PIPE, env={**os.environ, "DEEPSCOPE_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        assert process.stderr is not None
        port = None
        while port is None:
            row = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
            assert row, "the server has ended"
            found = re.search(r"Serving on \('127\.0\.0\.1', (\d+)\)", row)
            port = int(found[1]) if found else None
        drain = asyncio.create_task(process.stderr.read())
        editor = Editor()
        connect: Callable[[str, int], Awaitable[None]] = editor.start_tcp if transport == "--tcp" else editor.start_ws
        await connect("127.0.0.1", port)
        await begin(editor, root)
        uri = editor.open(root / "train.py")
        await editor.until_ready()
        assert (await editor.hints(uri))[6] == "38 µs · 19 %"
        await editor.shutdown_async(None)
        editor.exit(None)
        await asyncio.wait_for(process.wait(), PATIENCE)
        await drain

    run(scenario())


def test_deepscope_lsp_is_the_same_server(root: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        command = (sys.executable, "-m", "deepscope", "lsp")
        async with editing(root, cache=tmp_path / "cache", command=command) as editor:
            await editor.until_ready()

    run(scenario())


def test_the_server_ends_when_the_editor_is_gone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepscope_lsp"], input=b"", capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0
    assert done.stdout == b""


def test_where_pygls_is_missing_the_command_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['pygls'] = None; sys.modules['pygls.exceptions'] = None\n"
        "from deepscope_lsp.__main__ import main; sys.exit(main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "deepscope: the language server needs pygls; run: pip install 'deepscope[lsp]'\n"


def test_the_server_loads_no_torch_and_no_numpy_for_a_cached_profile() -> None:
    program = (
        "import sys; from deepscope_lsp.features import create_server; create_server()\n"
        "print([name for name in ('torch', 'lightning', 'numpy', 'wcwidth', 'fsspec') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "[]\n"
