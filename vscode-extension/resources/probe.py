"""Says, as JSON on one line, what the extension wants to know of this interpreter; imports nothing of it."""

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec


def installed(name):
    """A distribution's version; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def found(module):
    """Whether a top-level module could be imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


sys.stdout.write(
    json.dumps(
        {
            "executable": sys.executable,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "deepscope": installed("deepscope"),
            "hasServer": found("deepscope_lsp") and found("pygls"),
            "hasDashboard": found("tensorboard") and found("torch_tb_profiler"),
            "hasTorch": found("torch"),
        }
    )
)
