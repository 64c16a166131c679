"""What pairs of runs tell, by figures that are worked out by hand."""

import math

import pytest

from deepscope.records.findings import VERDICTS
from deepscope.trials.judgement import (
    FLOAT32_ROUNDING,
    Speedup,
    compared_losses,
    is_repeatable,
    speedup,
    step_ns,
    time_verdict,
    verdict_of,
)
from deepscope.trials.messages import Answer, ProgramFacts


def answer(losses=(1.0, 0.5, 0.25), **fields):
    return Answer(losses=list(losses), facts=ProgramFacts(), **fields)


def test_a_step_is_the_mean_of_those_behind_the_warm_up():
    marks = [(1, 1_000), (2, 9_000), (3, 10_000), (4, 11_000), (6, 15_000)]
    assert step_ns(answer(marks=marks), 2) == (15_000 - 9_000) / 4
    assert step_ns(answer(marks=marks), 6) == 0.0


def test_a_speedup_is_the_geometric_mean_of_its_pairs():
    found = speedup([(200.0, 100.0), (100.0, 100.0)], [100.0, 100.0, 100.0])
    assert found.ratio == pytest.approx(math.sqrt(2))
    assert (found.before_ns, found.after_ns) == pytest.approx((math.sqrt(2) * 100, 100.0))


CAUCHY = 1 / math.tan(math.pi * 0.05 / 4 / 2)
"""Student's quantile with one degree of freedom, for a quarter of 5 %: four looks share the error."""


def test_the_interval_is_of_what_runs_of_one_form_that_follow_one_another_differ_by():
    # Differences of logs: 0.2 of the unchanged runs, 0 of the changed ones: variance of a run (0.04 + 0) / 2 / 2.
    pairs = [(math.exp(0.1), 1.0), (math.exp(0.3), 1.0)]
    found = speedup(pairs, [1.0, math.exp(0.2)])
    assert math.log(found.ratio) == pytest.approx(0.2)
    assert math.log(found.low) == pytest.approx(0.2 - CAUCHY * math.sqrt(0.01 * (1 / 4 + 1 / 4 + 1 / 2)))
    assert math.log(found.high) - math.log(found.ratio) == pytest.approx(math.log(found.ratio) - math.log(found.low))


def test_an_unchanged_run_that_two_pairs_share_counts_once():
    found = speedup([(1.1, 1.0), (1.1, 1.0)], [1.0, math.exp(0.2)])
    assert math.log(found.ratio / found.low) == pytest.approx(CAUCHY * math.sqrt(0.01 * (1 + 1 / 2)))


def test_a_machine_that_gets_slower_all_the_while_makes_no_speedup():
    # A B B A, each run slower by a tenth than the one before it: the pairs' ratios are each other's inverse.
    a, b, c, d = (1.1**place for place in range(4))
    assert speedup([(a, b), (d, c)], [a, d]).ratio == pytest.approx(1.0)


def test_more_unchanged_runs_make_the_interval_narrower():
    few, many = (speedup([(1.1, 1.0)], [1.0, 1.02] * count) for count in (1, 4))
    assert many.high / many.low < few.high / few.low


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (1.30, 1.25, 1.35, "faster"),
        (1.015, 1.01, 1.02, "no gain"),  # certain, and not worth it
        (1.30, 0.95, 1.65, "inconclusive"),
        (1.00, 0.97, 1.03, "no gain"),
        (0.70, 0.40, 1.20, "inconclusive"),
        (0.70, 0.65, 0.75, "slower"),
        (0.99, 0.985, 0.995, "no gain"),
    ],
)
def test_the_verdict_follows_the_interval(ratio, low, high, verdict):
    found = Speedup(100.0, 100.0 / ratio, ratio, low, high)
    assert time_verdict(found) == verdict
    assert verdict in VERDICTS
    assert verdict_of(found, "different") == "results differ"
    assert verdict_of(found, "other random numbers") == verdict


def test_unchanged_runs_are_repeatable_bit_by_bit_alone():
    assert is_repeatable(answer([1.0, math.nan]), answer([1.0, math.nan]))
    assert not is_repeatable(answer([1.0]), answer([1.0 + 2**-52]))
    assert not is_repeatable(answer([]), answer([]))


def test_equal_losses_are_identical_but_for_a_lower_precision():
    assert compared_losses(answer(), answer()).losses == "identical"
    assert compared_losses(answer(), answer(), rounding=2**-9).losses == "within rounding"


def test_a_difference_is_rounding_where_rounding_makes_as_much_of_it_by_then():
    noisy = answer([1.0, 0.5001, 0.25])
    found = [compared_losses(answer(), answer([1.0, 0.5, last]), noisy=noisy).losses for last in (0.2507, 0.2509)]
    assert found == ["within rounding", "different"]


def test_a_difference_before_rounding_explains_it_is_different():
    found = compared_losses(answer(), answer([1.0001, 0.5, 0.25]), noisy=answer([1.0, 0.4, 0.25]))
    assert (found.losses, found.reason) == ("different", "loss 1 is 1.0001 in the place of 1")


def test_a_few_roundings_of_the_loss_itself_are_rounding():
    last_bits = answer([1.0 + 10 * FLOAT32_ROUNDING, 0.5, 0.25])
    assert compared_losses(answer(), last_bits, noisy=answer()).losses == "within rounding"
    assert compared_losses(answer(), last_bits).losses == "different"  # without the noisy run nothing tells


def test_nan_in_the_place_of_a_number_is_different():
    assert compared_losses(answer(), answer([1.0, math.nan, 0.25]), noisy=answer([1.0, 9.0, 9.0])).losses == "different"


def test_another_number_of_losses_is_different():
    assert compared_losses(answer(), answer([1.0, 0.5])).reason == "2 losses in the place of 3"


def test_other_random_numbers_are_so_where_the_remedy_may_draw_otherwise_and_the_program_did():
    old, new = answer(random_state="a"), answer([1.0, 0.7, 0.25], random_state="b")
    assert compared_losses(old, new, noisy=old, draws_otherwise=True).losses == "other random numbers"
    assert compared_losses(old, new, noisy=old).losses == "different"
    same_state = answer([1.0, 0.7, 0.25], random_state="a")
    assert compared_losses(old, same_state, noisy=old, draws_otherwise=True).losses == "different"


def test_samples_in_another_order_are_different_though_the_losses_are_not():
    old, new = answer(samples=[[1, 2, 3]]), answer(samples=[[1, 3, 2]])
    assert compared_losses(old, new).reason == "loader 1 asks for other samples, or in another order"
    assert compared_losses(old, answer(samples=[[1, 2, 3, 4]])).losses == "identical"  # asked for ahead
