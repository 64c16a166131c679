"""What was found in steps that were looked at, operator by operator, in place of being timed."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.trace.format.tolerant import Count, LineNumber

FORMAT = 1

MOST_ROWS = 1_000
"""Of each list; what costs most is kept."""

GradientFate = Literal["cleared", "no_optimizer"]
"""Why nobody used a gradient: it was cleared before a step of its optimizer, or no optimizer has its parameter."""

CopyNeed = Literal["none", "layout", "once", "grown"]
"""What a needless copy is needed for: for nothing, for strides that its readers do not need, once in a step, or at the
end of a loop that copies all that it has got so far again and again."""


OperatorChoice = Literal[
    "zeros", "order", "sort", "values", "symmetric", "inverse", "real", "part", "diagonal",
    "softmax_before", "softmax_again", "diagonal_matrices", "classes",
    "gelu", "silu", "relu", "leaky_relu", "layer_norm", "softmax", "log_softmax", "cross_entropy",
    "repeated_rows",
]  # fmt: skip
"""Why a cheaper operator would do: a factor of a product is mostly zeros; the other order of two products needs less;
the ends of an order are read; the values of a decomposition alone, or it is of a symmetric matrix; an inverse is only
multiplied with; a Fourier transform is of real numbers; a part of a convolution is read, the diagonal of a product; a
softmax follows that normalises once more, or is the one that does so; matrices are diagonal; a tensor is compared with
one class after the other and counted; rows that a weight is multiplied with repeat; or what is written out in several
operators is one of these functions."""


class AuditedPlace(msgspec.Struct, array_like=True, frozen=True):
    """A line of the user's that operators were called from."""

    file: int
    """Index into `Header.files`; -1 for none."""
    line: LineNumber
    function: str


class OperatorUse(msgspec.Struct, array_like=True, frozen=True):
    """Calls of one operator from one line in one step."""

    place: Count
    """Index into `AuditAccount.places`: of backward operators, the forward line."""
    name: str
    """`aten::mm`."""
    times: Count
    unused: Count
    """How many of them nobody needed."""
    part: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """The share of these calls' work that those are, by what they compute and write; None where that is not known."""

    @property
    def share(self) -> float:
        """The share of the calls' work that nobody needed; without `part` all count as equally long."""
        return min(self.unused / max(self.times, 1), 1.0) if self.part is None else self.part


class LineWork(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Work of one step, by the line that stands for it."""

    place: Count
    result_bytes: Count = 0
    operators: list[OperatorUse] = []
    """Of the forward work at its lines, whoever called it; the class tells which of it is `unused`."""
    backward: list[OperatorUse] = []
    """The same of backward work."""

    @property
    def unused_calls(self) -> int:
        """How many calls of forward operators are `unused`."""
        return sum(use.unused for use in self.operators)


class UnusedGradients(msgspec.Struct, frozen=True, omit_defaults=True):
    """Gradients that one backward pass of a step computed and nobody used."""

    place: Count
    """The line that called most of what was differentiated for them."""
    backward: int
    """The place that called the backward pass; -1 where that is not known."""
    fate: GradientFate
    parameters: Count
    elements: Count
    """Of these parameters."""
    modules: list[str] = []
    """The paths of the modules that have them, the outermost of which all parameters are among them."""
    whole: bool = False
    """Whether all that was differentiated of `place` was for them alone."""
    clipped: bool = False
    """Whether their norm was taken to clip gradients."""
    operators: list[OperatorUse] = []
    """Of the backward pass and those until it comes again, at lines of which some was unused."""
    shared: bool = False
    """Whether another backward pass goes through `place`, too, for gradients that are used."""


class SlicedCalls(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loop that calls something for one slice of a tensor after the other."""

    place: Count
    """The line of the loop that calls most."""
    slicing: Count
    """The place that takes the slices."""
    times: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """How often `place` was called with a slice in one step."""
    dimension: Count = 0
    shape: list[Count] = []
    """Of the tensor."""
    module: str = ""
    """The class of the module that was called with a slice."""
    is_chain: bool = False
    """Whether each call needs what the one before it returned, or changed."""
    others: list[Count] = []
    """Further places in the loop that were called with slices."""
    operators: Count = 0
    """Called in one step from all these places, forward and backward."""
    flops: Count = 0
    """Of these."""
    result_bytes: Count = 0
    """What those of the forward pass wrote."""
    length: Count = 1
    """Of each slice, in the dimension; such slices overlap if it is more than 1."""


class AlikeModules(msgspec.Struct, frozen=True, omit_defaults=True):
    """Modules of one class that are called one after the other, none of which needs what another one returned."""

    place: Count
    """The line that calls them."""
    module: str
    """Their class."""
    modules: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """How many there are."""
    operator: str = ""
    """The first one that they call."""
    parameters: Count = 0
    """How many parameters all of these modules have."""
    operators: Count = 0
    """Called in one step from that line, forward and backward."""


class SameWork(LineWork, frozen=True, omit_defaults=True):
    """What a function computes in each step anew, though it is the same; or one step more than once (`again`); or each
    epoch (`of_batch`); `unused` are the operators that compute the same.

    `place` is its line that writes most of it; of what a step computes again, the outermost line below which all is
    such. `backward` is all of these lines' backward work, a part of which is of what is computed again.
    """

    given: bool = False
    """Whether some of it is computed from a tensor that is no parameter and no buffer."""
    built: list[Count] = []
    """Its lines that make the same tensors of numbers of Python's or NumPy's, and compute nothing else; as `place`."""
    callers: list[Count] = []
    """The lines that call it for these tensors, if none of them computes anything else."""
    whole: bool = False
    """Whether the function, with all that it calls, computes and makes nothing else."""
    again: bool = False
    """Whether the same step has computed it before, from the same bytes."""
    rerun: bool = False
    """Whether a differentiated pass was the earlier one, and no backward pass goes through this one; parameters may
    have been updated in between."""
    of_batch: bool = False
    """Whether it is the same of a sample whenever that comes: computed of the loader's batch and of what no step
    changes, and used by what is differentiated."""
    stored_bytes: Count = 0
    """Of this, how much of its results in one step other work reads."""


class PrefixWork(LineWork, frozen=True, omit_defaults=True):
    """What a loop computes in one step for all that it has joined so far, again each time that it joins more to it.

    `place` is the line of the loop that computes most; `unused` are the operators that go through all positions.
    """

    times: Count
    """How often it does so."""
    shortest: Count = 0
    longest: Count = 0
    """How long what it has joined is at first, and in the end."""
    needed: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """The share of all positions that are new."""


class UnusedResults(LineWork, frozen=True, omit_defaults=True):
    """What one step computes forward and nobody uses (`unused`), or nobody but the line that reads it as a number.

    `place` is the outermost line below which nothing is used, else a line of which something is; `backward` is the work
    for derivatives, and what differentiates them once more.
    """

    whole: bool = False
    """Whether nothing of `place` is used."""
    module: str = ""
    """The class of the module that computes most of it."""
    is_number: bool = False
    """Whether a line reads it as a number (`.item()`)."""
    derivatives: Count = 0
    """How many derivatives it is (`torch.autograd.grad`); 0 for what is computed forward."""
    all_derivatives: Count = 0
    """Of so many that the line takes."""


class PartlyReadResults(LineWork, frozen=True, omit_defaults=True):
    """What one step computes for each row of a tensor (position, sample) by itself, while some rows are read.

    `place` is the line that computes most of it; `unused` are the operators some rows of whose results are read.
    """

    first: Count
    """The line that begins with it."""
    rows: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """Of one result."""
    read_rows: Count
    """That a later operator reads."""
    whole: bool = False
    """Whether that holds each time that these lines call these operators."""
    ignored: int | None = None
    """The target whose rows a loss leaves out, where such a loss reads the others."""
    is_loaded: bool = False
    """Whether a data set computes it; `operators` is empty then."""


class UnusedGraph(LineWork, frozen=True, omit_defaults=True):
    """Forward work of one step for which autograd kept a graph that no backward pass went through.

    `place` is the outermost line below which all work is such; `unused` are the operators with a node in the graph.
    """


class KeptGraphs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Results of one step that the next step left in place, with graphs that a backward pass has gone through."""

    place: Count
    """The line that computes them."""
    results: Count = 0
    name: str = ""
    """The operator of the first of them."""


class Broadcast(LineWork, frozen=True, omit_defaults=True):
    """A tensor that broadcasting makes much larger than its arguments, and that is reduced to a smaller one.

    Or one of ones in places that are given (`aten::scatter_`), which products take for rows of a matrix. `place` is the
    line that broadcasts, `result_bytes` are of all large tensors of this line and operator, the largest of which has
    the shape; `unused` are the operators from the broadcast to the reductions.
    """

    name: str = ""
    """The operator there: `aten::sub`."""
    reduction: str = ""
    """The first operator that reduces it: `aten::sum`."""
    shape: list[Count] = []
    """Of the large tensor."""
    given_elements: Count = 0
    """Of the largest argument."""
    reduced_elements: Count = 0
    """Of the largest tensor that it is reduced to; 0 where that needs none of this work."""


class NeedlessCopies(LineWork, frozen=True, omit_defaults=True):
    """Copies (`unused`) that a line makes in one step and could do without."""

    name: str
    """Of the operator that makes the largest: `aten::clone`."""
    need: CopyNeed
    reader: str = ""
    """The operator that reads this one first."""
    shape: list[Count] = []
    """Of this one."""
    times: Count = 0


class DoubleWork(LineWork, frozen=True, omit_defaults=True):
    """What one step computes with 64 bits a number (`unused`).

    `place` is the line where 64 bits are made of fewer; where that is nowhere, the first with such work.
    """

    lines: Count = 0
    """That have such work."""


class TableGradient(msgspec.Struct, frozen=True, omit_defaults=True):
    """The gradient of a table (an embedding), which has all rows although a step uses some."""

    place: Count
    """The line that looked rows up."""
    rows: Count
    used_rows: Count
    """In one step."""
    elements: Count
    """Of the table."""
    optimizer: str
    """The class of the one that steps the table."""
    stepped_elements: Count
    """Of all parameters that optimizers of this class step."""
    keeps_rows: bool = False
    """Whether its step leaves a row without a gradient as it is."""
    clipped: bool = False
    """Whether its norm was taken to clip gradients."""
    operators: list[OperatorUse] = []
    """Of the backward pass, at lines that looked rows up; `unused` are those that write all rows."""


class PaddedWork(LineWork, frozen=True, omit_defaults=True):
    """Lookups at a line for batches of sequences, some positions of which are padding.

    `unused` are the operators on all positions of what was looked up.
    """

    rows: Count
    length: Count
    """Of the longest row, with its padding."""
    positions: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """Of all rows."""
    padded: Count
    """How many of them are padding."""
    longest: Count
    """The largest number of other positions in a row."""


class CheaperOperator(LineWork, frozen=True, omit_defaults=True):
    """Calls of an operator in one step in place of which a cheaper one would do.

    `unused` are those, and the operators that come with them.
    """

    kind: OperatorChoice
    name: str = ""
    """Of the operator."""
    shape: list[Count] = []
    """Of its largest result."""
    times: Count = 0
    module: str = ""
    """The class of a library's module that calls it; "" where a line of the user's does."""
    needed: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """The share of the work that the cheaper one takes, at most."""
    others: list[Count] = []
    """Further places that begin with the same."""
    different: Count = 0
    """Where rows repeat: how many different ones there are in the largest part of them, at most."""


class AuditAccount(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of the first of the steps that were looked at; the next one tells what became of its results."""

    format: Count = FORMAT
    steps: Count = 0
    """How many were looked at; 0 where `left_out` says why."""
    operators: Count = 0
    """In the first of them."""
    left_out: str = ""
    hidden: list[str] = []
    """Operators from outside torch, whose arguments count as used."""
    places: list[AuditedPlace] = []
    gradients: list[UnusedGradients] = []
    slices: list[SlicedCalls] = []
    alike: list[AlikeModules] = []
    same: list[SameWork] = []
    double: list[DoubleWork] = []
    tables: list[TableGradient] = []
    results: list[UnusedResults] = []
    partly_read: list[PartlyReadResults] = []
    graphs: list[UnusedGraph] = []
    padding: list[PaddedWork] = []
    kept: list[KeptGraphs] = []
    broadcasts: list[Broadcast] = []
    copies: list[NeedlessCopies] = []
    cheaper: list[CheaperOperator] = []
    prefixes: list[PrefixWork] = []
