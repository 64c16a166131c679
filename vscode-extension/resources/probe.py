"""Says, as JSON on one line, what the extension wants to know of this interpreter; imports nothing of it."""

import json
import sys
import sysconfig

IS_OLD = sys.version_info < (3, 8)
"""What is too old for DeepScope lacks what this asks with: it says its version alone."""
if not IS_OLD:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec
    from pathlib import Path


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


def is_externally_managed():
    """Whether pip refuses to install here, as PEP 668 asks of it: the system's own Python, say."""
    marker = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return sys.prefix == sys.base_prefix and marker.is_file()


sys.stdout.write(
    json.dumps(
        {
            "executable": sys.executable,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "deepscope": None if IS_OLD else installed("deepscope"),
            "hasServer": not IS_OLD and found("deepscope_lsp") and found("pygls"),
            "hasTensorBoard": not IS_OLD and found("tensorboard") and found("torch_tb_profiler"),
            "hasTorch": not IS_OLD and found("torch"),
            "isExternallyManaged": not IS_OLD and is_externally_managed(),
        }
    )
)
