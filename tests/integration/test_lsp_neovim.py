"""Neovim itself, headless: the server attaches, shows diagnostics, and answers a hover.

What runs is the configuration of docs/editors.md, taken from that page.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_profiles import SOURCE, record

NEOVIM = shutil.which("nvim")
EDITORS = Path(__file__).resolve().parents[2] / "docs" / "editors.md"

CHECK = """
local function wait(what, holds)
  if not vim.wait(60000, holds, 20) then
    io.stderr:write("never: " .. what .. "\\n")
    vim.cmd("cquit 1")
  end
end

vim.cmd("edit " .. vim.env.DEEPSCOPE_TEST_FILE)
vim.bo.filetype = "python"
wait("two hot lines are shown", function()
  local hot = vim.tbl_filter(function(one) return one.code == "hot-line" end, vim.diagnostic.get(0))
  return #hot == 2
end)

local before = vim.diagnostic.get(0)
vim.api.nvim_buf_set_lines(0, 0, 0, false, { "# typed", "# in Neovim" })
wait("diagnostics follow the edit", function()
  local found = vim.diagnostic.get(0)
  return #found == #before and found[1].lnum ~= before[1].lnum and found[1].lnum - 2 >= 5
end)

local hover
vim.lsp.buf_request(0, "textDocument/hover", {
  textDocument = vim.lsp.util.make_text_document_params(),
  position = { line = 7, character = 10 },
}, function(_, result) hover = result end)
wait("the hover is answered", function() return hover ~= nil end)

local out = io.open(vim.env.DEEPSCOPE_TEST_OUT, "w")
out:write(vim.json and vim.json.encode({ diagnostics = vim.diagnostic.get(0), hover = hover })
  or vim.fn.json_encode({ diagnostics = vim.diagnostic.get(0), hover = hover }))
out:close()
vim.cmd("qall!")
"""


def documented_configuration() -> str:
    """The Lua of docs/editors.md that works in every Neovim from 0.7 on."""
    text = EDITORS.read_text(encoding="utf-8")
    section = text[text.index("## Neovim") :]
    blocks = re.findall(r"```lua\n(.*?)```", section, re.DOTALL)
    return next(block for block in blocks if "vim.lsp.start_client" in block)


@pytest.mark.skipif(NEOVIM is None, reason="Neovim is not installed (Debian: apt-get install neovim)")
def test_neovim_shows_the_diagnostics_and_the_hover(tmp_path: Path) -> None:
    assert NEOVIM is not None
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    file = root / "train.py"
    file.write_text(SOURCE, encoding="utf-8")
    record(root)
    configuration = tmp_path / "init.lua"
    configuration.write_text(documented_configuration(), encoding="utf-8")
    check = tmp_path / "check.lua"
    check.write_text(CHECK, encoding="utf-8")
    # The documented command is `deepscope lsp`; the one of this environment is the one to be tested.
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "deepscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deepscope "$@"\n', encoding="utf-8")
    (commands / "deepscope").chmod(0o755)
    out = tmp_path / "out.json"
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "xdg-cache"),
        "DEEPSCOPE_CACHE_DIR": str(tmp_path / "cache"),
        "DEEPSCOPE_TEST_FILE": str(file),
        "DEEPSCOPE_TEST_OUT": str(out),
    }
    done = subprocess.run(
        [NEOVIM, "--headless", "-u", str(configuration), "-c", f"luafile {check}"],
        env=environment, cwd=root, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(out.read_text(encoding="utf-8"))
    hot = {one["lnum"]: one for one in shown["diagnostics"] if one["code"] == "hot-line"}
    assert set(hot) == {7, 8}
    assert hot[7]["message"].startswith("Hot line: 75 % of the device time")
    assert hot[7]["source"] == "DeepScope"
    assert "**Net.forward, line 6**" in shown["hover"]["contents"]["value"]
    assert "| device | 30 µs | 75 % of busy |" in shown["hover"]["contents"]["value"]
