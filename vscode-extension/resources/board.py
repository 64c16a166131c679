"""Serves TensorBoard for the extension: on the loopback alone, on a free port, for as long as the extension lives.

Prints `{"url": ...}` once it answers. It ends when its standard input closes, so that nothing is left behind even when
the editor is killed.
"""

import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tensorboard import program
from werkzeug.wrappers import Response

SCRIPTS = Path(__file__).resolve().parents[1] / "dist" / "tensorboard"
"""What the extension adds to TensorBoard's pages, bundled: `charts.js` and `page.js`."""
PREFIX = "deepscope-"
PAGES = {"", "index.html", "trace_embedding.html"}
"""Last parts of the paths of pages that people look at: TensorBoard's own, torch-tb-profiler's, and its trace view."""
GOOGLE_CHARTS = b'src="https://www.gstatic.com/charts/loader.js"'

TRACE_NAME = re.compile(r"\.pt\.trace\.json(\.gz)?$")

ENDING_S = 2
"""How long to wait for the end of a process that was told to end."""


class WithScripts:
    """TensorBoard, its pages with the extension's scripts.

    torch-tb-profiler waits for Google Charts for ever. `charts.js` stands in its loader's place: it loads the same, and
    draws the charts itself where that fails. Addresses are relative, for proxies that take a part of the path away.
    """

    def __init__(self, application):
        self._application = application
        self._scripts = {PREFIX + path.name: path.read_bytes() for path in SCRIPTS.glob("*.js")}

    def __call__(self, environ, start_response):
        """Answers one request (PEP 3333)."""
        name = environ.get("PATH_INFO", "").rpartition("/")[2]
        if name in self._scripts:
            response = Response(self._scripts[name], content_type="text/javascript; charset=utf-8")
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Cache-Control"] = "no-cache"
            return response(environ, start_response)
        if name not in PAGES:
            return self._application(environ, start_response)
        plain = {key: value for key, value in environ.items() if key != "HTTP_ACCEPT_ENCODING"}
        response = Response.from_app(self._application, plain, buffered=True)
        if response.mimetype == "text/html" and environ.get("REQUEST_METHOD") == "GET":
            response.set_data(self._with_scripts(response.get_data()))
        return response(environ, start_response)

    def _with_scripts(self, page):
        page = page.replace(GOOGLE_CHARTS, f'src="{PREFIX}charts.js"'.encode())
        return page.replace(b"</head>", f'<script src="{PREFIX}page.js"></script></head>'.encode(), 1)


def serve(application, flags):
    """The server that TensorBoard would have, of the changed pages."""
    return program.create_port_scanning_werkzeug_server(WithScripts(application), flags)


@contextmanager
def nothing_left_behind():
    """Ends torch-tb-profiler's processes and removes its copies of traces with the block, which SIGTERM ends, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = tempfile.mkdtemp(prefix="ds-")  # sockets are made in it, whose paths must be short
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for child in multiprocessing.active_children():
            child.terminate()
            child.join(ENDING_S)
        shutil.rmtree(folder, ignore_errors=True)


def profiler_name(name):
    """A trace's name as torch-tb-profiler knows traces by; most are so called."""
    if TRACE_NAME.search(name):
        return name
    ending = ".gz" if name.endswith(".gz") else ""
    return name.removesuffix(".gz").removesuffix(".json") + ".pt.trace.json" + ending


def logdir_of(traces):
    """A folder that holds these traces alone, named as the one that they lie in."""
    folder = Path(tempfile.mkdtemp()) / (traces[0].parent.name or "traces")
    folder.mkdir()
    for trace in traces:
        link = folder / profiler_name(trace.name)
        try:
            link.symlink_to(trace)
        except OSError:  # on Windows links are a privilege
            shutil.copyfile(trace, link)
    return str(folder)


def main(arguments):
    """Starts the server and waits for the end of standard input.

    `--trace PATH`, as often as wanted, stands in for `--logdir` and shows these traces alone.
    """
    status = 0
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--trace", action="append", type=Path)
    own, arguments = parser.parse_known_args(arguments)
    try:
        with nothing_left_behind():
            if own.trace:
                arguments += ["--logdir", logdir_of(own.trace)]
            board = program.TensorBoard(server_class=serve)
            board.configure(
                argv=[sys.argv[0], *arguments, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]
            )
            sys.stdout.write(json.dumps({"url": board.launch()}) + "\n")
            sys.stdout.flush()
            sys.stdin.read()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    os._exit(status)  # its threads do not end by themselves


if __name__ == "__main__":
    main(sys.argv[1:])
