"""Which two forms of a program are run beside each other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deepscope.errors import OptionError
from deepscope.trials.runs import Command
from deepscope.trials.session import sides


def test_a_file_does_not_stand_in_a_modules_place(tmp_path: Path) -> None:
    (tmp_path / "copy.py").touch()
    runs: Any = SimpleNamespace(command=Command.parsed(["-m", "package.train"], working=tmp_path), folder=tmp_path)
    with pytest.raises(OptionError, match="a file, which cannot take a module's place"), sides(runs, "copy.py", ""):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["copy.py"]
