"""moto's S3 as a program: `python moto_server.py PORT LOG [SECONDS]`; each request is late by so much, and logged.

A line a request: method, path, the Range header, and how many are in work at the moment. What holds `forbidden` in its
path, or is named in the file `LOG.forbidden`, is answered with 403.
"""

import sys
import threading
import time
from pathlib import Path

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


class Watched:
    def __init__(self, application, log: Path, late_seconds: float) -> None:
        self._application = application
        self._log = log
        self._late_seconds = late_seconds
        self._lock = threading.Lock()
        self._in_work = 0

    def __call__(self, environ, start_response):
        with self._lock:
            self._in_work += 1
            with self._log.open("a") as log:
                query = environ.get("QUERY_STRING", "")
                path = environ["PATH_INFO"] + ("?" + query if query else "")
                log.write(f"{environ['REQUEST_METHOD']} {path} {environ.get('HTTP_RANGE', '-')} {self._in_work}\n")
        try:
            time.sleep(self._late_seconds)
            words = Path(f"{self._log}.forbidden")
            if environ["REQUEST_METHOD"] == "GET" and words.exists() and words.read_text() in environ["PATH_INFO"]:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
            return self._application(environ, start_response)
        finally:
            with self._lock:
                self._in_work -= 1


if __name__ == "__main__":
    port, log, *late = sys.argv[1:]
    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(port), Watched(application, Path(log), float(late[0]) if late else 0.0), threaded=True)
