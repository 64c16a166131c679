"""What to do about a line of Python that costs much, by what it calls."""

from __future__ import annotations

import re
from typing import NamedTuple

from deepscope.analysis.findings.source_text import SourceLine


class _Remedy(NamedTuple):
    uses: re.Pattern[str]
    """Dotted names of what is called, or of what an element is taken of."""
    words: str
    is_lazy: bool
    """Whether what it returns costs as much where it is used."""
    unless: re.Pattern[str] | None
    """Beginnings of dotted names with which on the line it is another matter."""
    is_of_many: bool
    """Whether it costs little where it is given few numbers."""


def _for(
    uses: tuple[str, ...], words: str, *, is_lazy: bool = False, unless: str | None = None, is_of_many: bool = False
) -> _Remedy:
    return _Remedy(re.compile("|".join(uses)), words, is_lazy, re.compile(unless) if unless else None, is_of_many)


_REMEDIES = (
    _for(
        (r"(?:.+\.)?(?:iloc|loc|iat|iterrows|itertuples)",),
        "A row of a DataFrame is made anew each time: take the columns out once (`df[columns].to_numpy()`), and index "
        "that.",
        is_lazy=True,
    ),
    _for(
        (
            r"(?:.+\.)?(?:read_csv|read_json|read_excel|loadtxt|genfromtxt|safe_load)",
            r"(?:u?json|orjson|yaml|csv|ET|ElementTree)\.(?:loads?|reader|DictReader|parse|fromstring)",
        ),
        "Parse once before training, and keep arrays that are only indexed here (`np.save`, then "
        "`np.load(…, mmap_mode='r')`).",
    ),
    _for(
        (r"(?:.+\.)?(?:\w*tokeni[sz]\w*|encode_plus|batch_encode_plus)(?:\.(?:encode|encode_batch|batch_encode))?",),
        "Tokenize once before training and keep the numbers (`dataset.map(…, batched=True)`), or whole batches at a "
        "time in the loader's workers.",
    ),
    _for(
        (
            r"(?:PIL\.)?Image\.open(?:\.\w+)*",
            r"(?:.+\.)?(?:imread|imdecode|read_image|decode_image|decode_jpeg|decode_png)",
            r"(?:librosa|torchaudio)\.load",
            r"(?:sf|soundfile)\.read",
        ),
        "Decode in the loader's workers, or once before training: keep what is decoded, in the size that the model "
        "takes.",
        is_lazy=True,
    ),
    _for(
        (
            r"(?:.+\.)?(?:resize|thumbnail|melspectrogram|mfcc)",
            r"(?:librosa|scipy|skimage|cv2|ndimage)\.\w[\w.]*",
        ),
        "Do it once before training, and keep the result (as arrays, `np.save`): of a sample it is the same in each "
        "epoch. What is drawn anew in each epoch comes after it.",
    ),
    _for(
        (
            r"(?:np|numpy|torch|pickle|joblib)\.loads?",
            r"h5py\.File",
            r"(?:.+\.)?(?:open|read_bytes|read_text|read_parquet)",
        ),
        "Open files once, not for each sample: keep what they hold in memory, or map it (`np.load(…, mmap_mode='r')`, "
        "`torch.load(…, mmap=True)`).",
    ),
    _for(
        (
            r"(?:.+\.)?\w*(?:accuracy|precision|recall|f1|roc_auc|average_precision|jaccard)_score",
            r"(?:.+\.)?(?:confusion_matrix|classification_report|roc_curve)",
        ),
        "Keep predictions and labels, and compute the metric once an epoch.",
    ),
    _for(
        (
            r"(?:torch|np|numpy|pickle|joblib|json|yaml)\.(?:save|savez|savez_compressed|dump)",
            r"(?:.+\.)?(?:save_checkpoint|save_pretrained|to_csv|savefig)",
            r"(?:plt|pyplot)\.\w+",
        ),
        "Write it every N steps, or at the end of an epoch.",
    ),
    _for(
        (
            r"(?:.+\.)?random\.(?:sample|shuffle|choice|choices|permutation)",
            r"(?:.+\.)?\w*(?:rng|generator)\.(?:choice|permutation|shuffle)",
            r"(?:torch\.)?randperm(?:\.\w+)*",
        ),
        "Draw places, not from a copy or an order of the whole: `rng.integers(len(buffer), size=k)`, `torch.randint`, "
        "or without repetition `rng.choice(len(buffer), k, replace=False)` of a `np.random.default_rng()`; or shuffle "
        "once an epoch and take slices. Keep the buffer in arrays or a list: a `deque` is slow to index.",
    ),
    _for(
        (r"sorted|heapq\.(?:merge|heapify)",),
        "Where few are needed: `heapq.nlargest(k, …)`, of arrays `np.argpartition`. Where the order is kept: "
        "`bisect.insort`, or sort once before the loop.",
    ),
    _for(
        (r"(?:copy\.)?deepcopy",),
        "Copy values in place (`target.load_state_dict(…)`); for a moving average of weights "
        "`torch.optim.swa_utils.AveragedModel`.",
    ),
    _for(
        (r"gc\.collect", r"torch\.\w+\.empty_cache"),
        "Take it out: Python and torch free memory by themselves, and use again what they freed.",
    ),
    _for(
        (r"torch\.(?:tensor|as_tensor|[A-Z]\w*Tensor)",),
        "Let NumPy or torch make whole arrays (`np.stack(…)`, `torch.from_numpy(…)`): lists go number by number.",
        unless=r"(?:np|numpy)\.",  # what NumPy makes is no list
        is_of_many=True,
    ),
)
"""The first that fits a line holds."""


def line_remedy(source: SourceLine, *, always: bool = False) -> str:
    """What to do about a line, by what it calls or indexes; "" where nothing is known of that, or of its text.

    `always`: by what costs much however little it is given.
    """
    here, before = source.uses, source.uses_behind
    for one in _REMEDIES:
        if always and one.is_of_many:
            continue
        if one.unless is not None and any(map(one.unless.match, here)):
            continue
        if any(map(one.uses.fullmatch, here + before if one.is_lazy else here)):
            return one.words
    return ""
