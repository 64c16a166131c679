"""Many texts as two arrays, so that they can be mapped from a file and read one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deepscope.printable import printable
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in UTF-8; lone surrogates, which JSON may hold, are kept as they are."""

    content: npt.NDArray[np.uint8]
    offset: Int64
    """Where each text begins; shape (texts + 1,)."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """The table of some texts."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        return cls(np.frombuffer(b"".join(parts), np.uint8), np.concatenate(([0], np.cumsum(lengths))))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, index: int) -> str:
        content = self.content[self.offset[index] : self.offset[index + 1]]
        return content.tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        content = self.content.tobytes()
        ends = self.offset.tolist()
        for begin, end in pairwise(ends):
            yield content[begin:end].decode("utf-8", "surrogatepass")


def encodable(text: str) -> str:
    """A text as it is or, where it holds what UTF-8 cannot say, made printable."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return printable(text)
    return text
