"""`deepscope model`: parameters, FLOPs and activations of a model, without a trace."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import redirect_stdout

import click

from deepscope.cli.output import emit, form_option, rows_option, rows_shown, terminal
from deepscope.errors import DeepScopeError, FactoryError, MissingExtraError


@click.command()
@click.argument("factory", metavar="FILE:FACTORY")
@click.option(
    "--by",
    type=click.Choice(["module", "operator", "both"]),
    help="What the rows are.  [default: module; json: all three]",
)
@click.option("--backward", is_flag=True, help="Count the backward pass, too.")
@click.option("--meta", is_flag=True, help="Make the model on torch's `meta` device: it takes no memory.")
@rows_option
@form_option("text", "json", "csv")
def model(*, factory: str, by: str | None, backward: bool, meta: bool, limit: int | None, form: str) -> None:
    """Count parameters, FLOPs and activation bytes of a model: in all, by module, by operator, by both.

    FACTORY is a function without arguments, in the file FILE or in a module (`package.module:FACTORY`). It returns the
    model and its inputs: `return model, x`, or a tuple of inputs, or a dict of keyword arguments, or both:
    `return model, (x,), {"mask": mask}`. The model is called once.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch")
    from deepscope.measure.counts import model_csv, model_json, model_text
    from deepscope.measure.model import count_call, load_factory, made_by, on_meta, one_line

    with on_meta(meta):
        call = made_by(load_factory(factory), factory)
        try:
            with redirect_stdout(sys.stderr):  # what the model itself prints
                counts = count_call(call, backward=backward)
        except DeepScopeError:
            raise
        except Exception as error:
            raise FactoryError(f"{factory}: the model cannot be called: {one_line(error)}") from error
    rows = rows_shown(limit, form)
    if form == "json":
        emit(model_json(counts, by=by, limit=rows) + "\n")
    elif form == "csv":
        emit(model_csv(counts, by=by or "module", limit=rows))
    else:
        emit(model_text(counts, by=by or "module", limit=rows, **terminal()))
