"""When a remedy applies, and what is said where it does not."""

import pytest

from deepscope.analysis.findings import RULES
from deepscope.ranks.straggler_finding import CODE
from deepscope.trials.messages import (
    DistributedFacts,
    LoaderFacts,
    ModuleFacts,
    OptimizerFacts,
    ProgramFacts,
    TrainerFacts,
)
from deepscope.trials.remedies import REMEDIES, remedies_of
from deepscope.trials.remedy_search import candidates


def loader(**fields):
    plain = {
        "dataset": "Pictures", "workers": 0, "pin_memory": False, "persistent_workers": False, "prefetch_factor": None,
        "is_iterable": False, "is_sharded": False, "start_method": "fork",
    }  # fmt: skip
    return LoaderFacts(**{**plain, **fields})


def optimizer(**fields):
    plain = {
        "kind": "AdamW", "device": "cpu", "parameters": 4, "takes_fused": True, "takes_foreach": True, "fused": False,
        "foreach": None,
    }  # fmt: skip
    return OptimizerFacts(**{**plain, **fields})


def module(**fields):
    plain = {
        "kind": "Net", "device": "cpu", "has_convolutions": True, "is_channels_last": False, "is_compiled": False,
        "under_autocast": False, "dtype": "float32",
    }  # fmt: skip
    return ModuleFacts(**{**plain, **fields})


def trainer(**fields):
    plain = {
        "log_every_n_steps": 1, "has_logger": True, "check_val_every_n_epoch": 1, "val_check_interval": 1.0,
        "validations": 2,
    }  # fmt: skip
    return TrainerFacts(**{**plain, **fields})


APPLICABLE = {
    "threads": (ProgramFacts(cores=4, threads=1), {"threads": 4}),
    "one-thread": (ProgramFacts(cores=4, threads=4), {"threads": 1}),
    "anomaly-off": (ProgramFacts(has_anomaly_detection=True), {}),
    "no-argument-checks": (ProgramFacts(checks_distributions=True), {}),
    "deterministic-off": (ProgramFacts(is_deterministic=True), {}),
    "matmul-precision": (ProgramFacts(has_cuda=True, has_tf32=True), {"precision": "high"}),
    "cudnn-benchmark": (ProgramFacts(has_cuda=True, modules=[module()]), {}),
    "loader-workers": (ProgramFacts(cores=4, loaders=[loader()]), {"num_workers": 3}),
    "persistent-workers": (ProgramFacts(loaders=[loader(workers=2, iterators=2)]), {}),
    "prefetch": (ProgramFacts(loaders=[loader(workers=2, prefetch_factor=2)]), {"prefetch_factor": 4}),
    "pin-memory": (ProgramFacts(has_cuda=True, loaders=[loader()]), {}),
    "fused-optimizer": (ProgramFacts(optimizers=[optimizer()]), {}),
    "foreach-optimizer": (ProgramFacts(optimizers=[optimizer()]), {}),
    "zero-grad-to-none": (ProgramFacts(zeroes_in_place=True), {}),
    "channels-last": (ProgramFacts(modules=[module()]), {}),
    "autocast": (ProgramFacts(modules=[module(device="cuda")]), {"device": "cuda"}),
    "compile": (ProgramFacts(modules=[module()]), {}),
    "log-less": (ProgramFacts(trainer=trainer()), {"log_every_n_steps": 50}),
    "validate-less": (ProgramFacts(trainer=trainer(val_check_interval=0.1)), {"val_check_interval": 0.4}),
    "validate-fewer-epochs": (ProgramFacts(trainer=trainer()), {"check_val_every_n_epoch": 4}),
    "validate-fewer-batches": (ProgramFacts(trainer=trainer()), {"limit_val_batches": 0.25}),
    "static-graph": (ProgramFacts(distributed=DistributedFacts(static_graph=False, bucket_cap_mb=None, ranks=1)), {}),
    "larger-buckets": (
        ProgramFacts(distributed=DistributedFacts(static_graph=False, bucket_cap_mb=None, ranks=2)),
        {"bucket_cap_mb": 100},
    ),
}


def test_every_remedy_is_tried_here():
    assert APPLICABLE.keys() == REMEDIES.keys()


@pytest.mark.parametrize("name", APPLICABLE)
def test_a_remedy_applies_to_a_program_that_lacks_it(name):
    facts, settings = APPLICABLE[name]
    assert REMEDIES[name].decide(facts) == pytest.approx(settings)
    assert REMEDIES[name].words(settings).startswith(f"{name}: ")
    assert "{" not in REMEDIES[name].words(settings)


@pytest.mark.parametrize("name", REMEDIES)
def test_a_remedy_says_why_it_does_not_apply_to_a_program_that_has_nothing_of_it(name):
    reason = REMEDIES[name].decide(ProgramFacts())
    assert isinstance(reason, str)
    assert len(reason.split()) > 2


REFUSED = [
    ("loader-workers", ProgramFacts(loaders=[loader(workers=2)]), "2 workers already"),
    ("loader-workers", ProgramFacts(loaders=[loader(is_iterable=True)]), "without get_worker_info()"),
    ("loader-workers", ProgramFacts(loaders=[loader(is_iterable=True, is_sharded=True)]), "in another order"),
    ("loader-workers", ProgramFacts(loaders=[loader(device="cuda")]), "tensors on cuda"),
    (
        "loader-workers",
        ProgramFacts(loaders=[loader(start_method="spawn", unpicklable="its dataset cannot")]),
        "by spawn, and",
    ),
    ("loader-workers", ProgramFacts(loaders=[loader(start_method="forkserver")], is_guarded=False), "__main__"),
    ("persistent-workers", ProgramFacts(loaders=[loader(workers=2, iterators=1)]), "no second epoch"),
    ("persistent-workers", ProgramFacts(loaders=[loader(workers=2, persistent_workers=True)]), "already"),
    ("prefetch", ProgramFacts(loaders=[loader(workers=2, prefetch_factor=8)]), "8 batches ahead already"),
    ("pin-memory", ProgramFacts(has_cuda=True, loaders=[loader(device="cuda")]), "on the device already"),
    ("fused-optimizer", ProgramFacts(optimizers=[optimizer(fused=True)]), "already"),
    (
        "fused-optimizer",
        ProgramFacts(optimizers=[optimizer(kind="LBFGS", takes_fused=False)]),
        "LBFGS has no fused form",
    ),
    ("foreach-optimizer", ProgramFacts(optimizers=[optimizer(device="cuda")]), "takes foreach already"),
    ("foreach-optimizer", ProgramFacts(optimizers=[optimizer(fused=True)]), "is fused"),
    ("matmul-precision", ProgramFacts(has_tf32=True, matmul_precision="high"), "'high' already"),
    ("channels-last", ProgramFacts(modules=[module(has_convolutions=False)]), "no 2-D convolutions"),
    ("channels-last", ProgramFacts(modules=[module(is_channels_last=True)]), "already"),
    ("autocast", ProgramFacts(modules=[module(under_autocast=True)]), "already"),
    ("autocast", ProgramFacts(modules=[module(dtype="bfloat16")]), "bfloat16"),
    ("compile", ProgramFacts(modules=[module(is_compiled=True)]), "already"),
    ("log-less", ProgramFacts(trainer=trainer(log_every_n_steps=50)), "every 50 steps already"),
    ("log-less", ProgramFacts(trainer=trainer(has_logger=False)), "no logger"),
    ("validate-fewer-epochs", ProgramFacts(trainer=trainer(validations=0)), "no validation begins"),
    (
        "static-graph",
        ProgramFacts(distributed=DistributedFacts(static_graph=True, bucket_cap_mb=None, ranks=1)),
        "already",
    ),
    (
        "threads",
        ProgramFacts(cores=4, threads=2, loaders=[loader(workers=2)]),
        "2 threads for 4 cores beside 2 workers",
    ),
]


@pytest.mark.parametrize(("name", "facts", "words"), REFUSED)
def test_a_remedy_is_refused_with_its_reason(name, facts, words):
    reason = REMEDIES[name].decide(facts)
    assert isinstance(reason, str)
    assert words in reason


def test_a_loader_that_cannot_have_workers_does_not_keep_another_from_them():
    facts = ProgramFacts(cores=2, loaders=[loader(is_iterable=True), loader()])
    assert REMEDIES["loader-workers"].decide(facts) == {"num_workers": 1}


def test_remedies_that_change_precision_are_known():
    assert {name for name, one in REMEDIES.items() if one.rounding} == {"autocast", "matmul-precision"}


def test_remedies_name_findings_and_remedies_that_there_are():
    codes = {*(rule.code for rule in RULES), CODE}
    assert {code for one in REMEDIES.values() for code in one.findings} <= codes
    assert {name for one in REMEDIES.values() for name in one.clashes} <= REMEDIES.keys()


def test_without_a_word_all_are_tried_those_of_the_programs_findings_first():
    chosen, rows = candidates([], ["DS022", "DS001"])
    assert chosen[0].remedy.name == "anomaly-off"
    assert {one.remedy.name for one in chosen} == REMEDIES.keys()
    assert rows == []


def test_a_finding_brings_its_remedies_and_one_without_any_says_so():
    chosen, rows = candidates(["DS011", "compile", "DS032"], [])
    assert [one.remedy for one in chosen] == [*remedies_of("DS011"), REMEDIES["compile"]]
    assert [(one.finding, one.verdict) for one in rows] == [("DS032", "not applicable")]
    assert "deepscope verify" in rows[0].reason
