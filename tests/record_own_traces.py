"""Records the repository's own traces anew: `python tests/record_own_traces.py`, on Python 3.12 or later.

What is this machine's goes out of them: folders and the host's name. Everything else is as it was recorded.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from graft import graft
from recorded_traces import OWN_TRACES

PROGRAM = OWN_TRACES / "train.py"
PROJECT, ENVIRONMENT, PYTHON, HOST = "/home/user/project", "/opt/venv", "/opt/python", "trainer"


def recorded(how: str, folder: Path) -> str:
    """The text of the trace that the program writes when it is recorded in this way."""
    project = folder / how
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    shutil.copyfile(PROGRAM, project / "train.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "train.py", how, "traces"], cwd=project, check=True, env=environment)
    (trace,) = (path for path in project.rglob("*.pt.trace.json*"))
    data = trace.read_bytes()
    text = (gzip.decompress(data) if trace.suffix == ".gz" else data).decode()
    places = {
        str(project): PROJECT,
        str(Path(sys.prefix)): ENVIRONMENT,
        str(Path(sys.base_prefix)): PYTHON,
        platform.node(): HOST,
    }
    for own, general in places.items():
        text = text.replace(own, general)
    return text


def write(name: str, document: dict[str, Any]) -> None:
    text = json.dumps(document, separators=(",", ":"))
    path = OWN_TRACES / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(document['traceEvents']):,} events")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write("lightning-with-workers", json.loads(recorded("lightning", Path(folder))))
        write("torch-with-stack", json.loads(recorded("torch", Path(folder))))
        on_device = json.loads(recorded("memory", Path(folder)))
        graft(on_device)
        write("grafted-device", on_device)


if __name__ == "__main__":
    main()
