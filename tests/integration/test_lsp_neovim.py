"""Neovim itself, headless: the server attaches, shows diagnostics, and answers a hover.

What runs is the configuration of docs/editors.md, taken from that page.
"""

import json
import shutil
from pathlib import Path

import pytest

from real_editors import RealEditor, documented

pytestmark = pytest.mark.thorough

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


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed (Debian: apt-get install neovim)")
def test_neovim_shows_the_diagnostics_and_the_hover(tmp_path: Path) -> None:
    editor = RealEditor(tmp_path)
    configuration = editor.write("init.lua", documented("lua", "vim.lsp.start_client"))
    check = editor.write("check.lua", CHECK)
    shown = json.loads(editor.run("nvim", "--headless", "-u", str(configuration), "-c", f"luafile {check}"))
    hot = {one["lnum"]: one for one in shown["diagnostics"] if one["code"] == "hot-line"}
    assert set(hot) == {7, 8}
    assert hot[7]["message"].startswith("Hot line: 19 % of the run's cost")
    assert hot[7]["source"] == "DeepScope"
    # Hot lines are hints (4), what Neovim counts last; findings are the problems.
    assert {line: one["severity"] for line, one in hot.items()} == {7: 4, 8: 4}
    assert [one["severity"] for one in shown["diagnostics"] if one["code"] == "DS005"] == [2]
    assert "**Net.forward, line 8** (line 6 when recorded)" in shown["hover"]["contents"]["value"]
    assert "| cost | 38 µs | 19 % of the run's cost |" in shown["hover"]["contents"]["value"]
