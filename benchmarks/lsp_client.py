"""The least that speaks the language server protocol, for measuring: its own time must not show."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Client:
    """The least that speaks the protocol: requests one at a time, over pipes."""

    def __init__(self, command: Sequence[str], cache: Path) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "DEEPSCOPE_CACHE_DIR": str(cache)},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._next = 0
        self.heard: list[dict[str, Any]] = []

    def notify(self, method: str, params: Any) -> None:
        """Sends what needs no answer."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Asks, and reads until the answer."""
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self._next and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message.get("result")
            self._take(message)

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a message fits."""
        while True:
            message = self._read()
            self._take(message)
            if holds(message):
                return message

    def begin(self, root: Path) -> None:
        """The first exchange."""
        folder = {"uri": root.as_uri(), "name": root.name}
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": {},
                "initializationOptions": {"inlayHints": "all"},
            },
        )
        self.notify("initialized", {})

    def end(self) -> None:
        """The last one; the server must end by itself."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(timeout=30)

    @property
    def memory_bytes(self) -> int:
        """Resident size of the server; 0 where the system does not say."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return 0
        return next(int(row.split()[1]) << 10 for row in status.splitlines() if row.startswith("VmRSS"))

    def _take(self, message: dict[str, Any]) -> None:
        self.heard.append(message)
        if "method" in message and "id" in message:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()

    def _read(self) -> dict[str, Any]:
        length = 0
        while (row := self._out.readline()) not in {b"\r\n", b""}:
            name, _, value = row.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise RuntimeError("the server has closed its output")
        message: dict[str, Any] = json.loads(self._out.read(length))
        return message


def is_ready(message: dict[str, Any]) -> bool:
    """Whether a message says that a profile is shown."""
    return message.get("method") == "$/deepscope/status" and message["params"]["state"] == "ready"


def open_document(client: Client, file: Path) -> dict[str, str]:
    """Opens a Python file; answers how requests name it."""
    document = {"uri": file.as_uri()}
    item = {**document, "languageId": "python", "version": 1, "text": file.read_text(encoding="utf-8")}
    client.notify("textDocument/didOpen", {"textDocument": item})
    return document
