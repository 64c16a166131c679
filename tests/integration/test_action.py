"""`action.yml`: its script, run on real traces beside a stand-in for GitHub's API, which keeps comments in memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from warm_python import run_warm

PROGRAM = """\
import sys
import time

import torch

import deepscope


def step(batch):
    time.sleep(float(sys.argv[2]))
    return batch.sum()


with deepscope.profile(sys.argv[1], wait=1, warmup=1, active=5) as prof:
    for batch in prof.iterate([torch.ones(10)] * 8):
        step(batch)
"""
NUMBER = 7


class GitHub(ThreadingHTTPServer):
    """The part of GitHub's API for comments of one pull request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.comments: list[dict[str, Any]] = []
        self.may_write = True
        self.calls: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, body: str, *, kind: str = "User", association: str = "NONE") -> None:
        comment = {"id": len(self.comments), "body": body, "user": {"type": kind}, "author_association": association}
        self.comments.append(comment)


class Requests(BaseHTTPRequestHandler):
    server: GitHub

    def answer(self) -> None:
        github = self.server
        path, _, query = self.path.removeprefix("/repos/owner/name/").partition("?")
        github.calls.append(self.command)
        data = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        result: Any = {}
        status = 200
        if self.headers["Authorization"] != "Bearer secret":
            status = 401
        elif self.command != "GET" and not github.may_write:
            status = 403
        elif self.command == "GET" and path == f"issues/{NUMBER}/comments":
            page = int(re.findall(r"\bpage=(\d+)", query)[0])
            result = github.comments[100 * (page - 1) : 100 * page]
        elif self.command == "POST" and path == f"issues/{NUMBER}/comments":
            github.add(data["body"], kind="Bot")
            status = 201
        elif self.command == "PATCH" and path.startswith("issues/comments/"):
            github.comments[int(path.rpartition("/")[2])]["body"] = data["body"]
        else:
            status = 404
        text = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("action")
    (root / "pyproject.toml").touch()
    (root / "train.py").write_text(PROGRAM)
    for name, seconds in (("base", "0.004"), ("slower", "0.034")):
        done = run_warm(script=root / "train.py", arguments=(str(root / name), seconds), folder=root)
        assert done.returncode == 0, done.stderr
    (root / "event.json").write_text(json.dumps({"pull_request": {"number": NUMBER}}))
    (root / "push.json").write_text(json.dumps({"ref": "refs/heads/main"}))
    return root


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Action:
    def __init__(self, folder: Path, summary: Path, github: GitHub, repository: Path) -> None:
        self.folder, self.summary, self.github = folder, summary, github
        self.script = repository / "scripts" / "action"

    def __call__(self, event: str = "event.json", **inputs: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
            "GITHUB_API_URL": self.github.address,
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_EVENT_PATH": str(self.folder / event),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_TOKEN": "secret",
        }
        words = [sys.executable, str(self.script)]
        return subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def action(runs: Path, tmp_path: Path, github: GitHub, repository: Path) -> Action:
    return Action(runs, tmp_path / "summary.md", github, repository)


def test_one_comment_is_written_and_then_kept_up_to_date(action: Action, github: GitHub) -> None:
    for number in range(150):
        github.add(f"talk {number}")
    github.add("<!-- deepscope default -->\nA stranger's.")
    first = action(before="base", after="slower", fail_over="5%")
    assert first.returncode == 3, first.stderr
    body = github.comments[-1]["body"]
    assert body.startswith("<!-- deepscope default -->\n### DeepScope: ")
    assert "**failed**" in body
    assert "time.sleep(float(sys.argv[2]))" in body
    assert action.summary.read_text(encoding="utf-8") == body.partition("\n")[2]

    second = action(before="slower", after="base", fail_over="5%")
    assert second.returncode == 0, second.stderr
    assert len(github.comments) == 152
    assert "**failed**" not in github.comments[-1]["body"]
    assert github.comments[-2]["body"].endswith("A stranger's.")

    assert action(before="slower", after="base", name="other", options="--by phase").returncode == 0
    assert github.comments[-1]["body"].startswith("<!-- deepscope other -->")
    assert len(github.comments) == 153


def test_a_fork_without_the_right_to_write_is_warned_alone(action: Action, github: GitHub) -> None:
    github.may_write = False
    done = action(before="slower", after="base")
    assert done.returncode == 0
    assert (
        "::warning::DeepScope could not write its comment: GitHub answered 403; a pull request from a fork"
        in done.stdout
    )
    assert "### DeepScope" in action.summary.read_text(encoding="utf-8")
    assert action(before="base", after="slower", fail_over="5").returncode == 3


def test_without_a_pull_request_or_a_wish_for_it_there_is_no_comment(action: Action, github: GitHub) -> None:
    assert action("push.json", before="slower", after="base").returncode == 0
    assert action(before="slower", after="base", comment="false").returncode == 0
    assert github.calls == []
    assert action.summary.read_text(encoding="utf-8").count("### DeepScope") == 2


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"before": "base"}, 2, "::error::DeepScope: `after`, or `program`, is needed"),
        ({"before": "base", "after": "slower", "name": "-->"}, 2, "`name` takes letters"),
        ({"before": "base", "after": "slower", "options": "'"}, 2, "No closing quotation"),
        ({"before": "$(touch harm)", "after": "`touch harm`"}, 1, "$(touch harm)"),
        ({"before": "--help", "after": "base"}, 1, "--help"),
    ],
)
def test_inputs_are_words_and_nothing_else(
    action: Action, github: GitHub, inputs: dict[str, str], code: int, said: str
) -> None:
    done = action(**inputs)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert not (action.folder / "harm").exists()
    assert (github.calls, action.summary.exists()) == ([], False)


@pytest.mark.thorough
def test_verify_runs_a_program_that_sees_no_token(action: Action, github: GitHub, tmp_path: Path) -> None:
    text = """\
import os
import torch
assert "GITHUB_TOKEN" not in os.environ
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""
    (tmp_path / "old.py").write_text(text)
    (tmp_path / "new.py").write_text(text.replace("1e-2", "2e-2"))
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "event.json").write_text((action.folder / "event.json").read_text())
    action.folder = tmp_path
    done = action(before="old.py", after="new.py", program="train.py --epochs 1", options="--steps 3 --budget 60s")
    assert done.returncode == 3, done.stderr
    assert "RESULTS DIFFER" in github.comments[0]["body"]
    assert "`train.py --epochs 1`, `old.py` → `new.py`" in github.comments[0]["body"]


def test_no_shell_reads_an_input_and_the_script_reads_each(repository: Path) -> None:
    text = (repository / "action.yml").read_text(encoding="utf-8")
    inputs = re.findall(r"^  ([a-z-]+):$", text.partition("\ninputs:")[2].partition("\nruns:")[0], re.MULTILINE)
    passed = re.findall(r"^        (\w+): \$\{\{ inputs\.([a-z-]+) \}\}$", text, re.MULTILINE)
    assert sorted(name for _, name in passed) == sorted(inputs)
    assert all("${{" not in line for line in re.findall(r"^ *run: .+$", text, re.MULTILINE))
    script = (repository / "scripts" / "action").read_text(encoding="utf-8")
    read = {f"INPUT_{name}" for name in re.findall(r'given\("(\w+)"\)', script)}
    assert {name for name, _ in passed} - {"GITHUB_TOKEN", "INPUT_PYTHON"} == read
