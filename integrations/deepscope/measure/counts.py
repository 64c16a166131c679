"""What is counted of a model: in all, by operator, by module, and by both."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class TotalNumbers:
    """The whole model, for one call."""

    parameters: int
    """Elements of all parameters, a shared one once."""
    trainable_parameters: int
    """The part that requires gradients."""
    parameter_bytes: int
    flops: int
    """Forward and, where asked for, backward; a multiplication and an addition are two."""
    backward_flops: int
    """The part of `flops` in the backward pass."""
    activation_bytes: int
    """Results that the operators of the forward pass wrote to memory of their own."""
    moved_bytes: int
    """The least that operators must read and write."""
    calls: int
    """Of operators, views among them."""


@dataclass(frozen=True, kw_only=True)
class OperatorNumbers:
    """All calls of one operator."""

    operator: str
    """As a trace names it: `aten::addmm`."""
    calls: int
    flops: int
    backward_flops: int
    activation_bytes: int
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModuleNumbers:
    """One module, with all that it calls; the fields that begin with `self_` without that."""

    path: str
    """Dotted, in the model; "" for the model itself."""
    class_name: str
    calls: int
    """Of the module, in the forward pass."""
    parameters: int
    """Its own and those of the modules that it holds, a shared one once."""
    self_parameters: int
    flops: int
    self_flops: int
    backward_flops: int
    activation_bytes: int
    self_activation_bytes: int
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModuleOperatorNumbers(OperatorNumbers):
    """The calls of one operator that a module makes itself."""

    path: str
    class_name: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelCounts:
    """Parameters, FLOPs and activation bytes of one call of a model; prints itself as a table.

    Each of `by_operator` and `by_both` sums to `total`, and so do the `self_` fields of `by_module`.
    """

    model: str
    """Its class, or the function's name."""
    with_backward: bool
    total: TotalNumbers
    by_operator: tuple[OperatorNumbers, ...]
    """Most FLOPs first."""
    by_module: tuple[ModuleNumbers, ...]
    """In the order of the model's tree, the model first; what ran in no module stands at the model."""
    by_both: tuple[ModuleOperatorNumbers, ...]
    """Most FLOPs first."""
    without_formula: dict[str, int] = field(default_factory=dict)
    """Operators that may take FLOPs which nothing tells (custom ones, recurrent layers of oneDNN), and their calls."""

    def table(self, by: str = "module", *, limit: int = 0, width: int = 80) -> str:
        """As text, `by` "module", "operator" or "both"; the `limit` rows with most FLOPs, 0 for all.

        Raises:
            OptionError: no such `by`.
        """
        from deepscope.measure.model_report import model_text

        return model_text(self, by=by, limit=limit, width=width)

    def to_json(self) -> str:
        """All tables as a JSON object, fields as they are named here."""
        from deepscope.measure.model_report import model_json

        return model_json(self)

    def to_csv(self, by: str = "module") -> str:
        """One table as CSV. Raises `OptionError`: no such `by`."""
        from deepscope.measure.model_report import model_csv

        return model_csv(self, by=by)

    def __str__(self) -> str:
        return self.table(limit=40).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from deepscope.measure.model_report import model_html

        return model_html(self)
