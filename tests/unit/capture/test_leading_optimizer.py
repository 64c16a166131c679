"""Which optimizer's steps are the program's."""

from __future__ import annotations

from deepscope.capture.process_hooks.optimizer_steps import LeadingOptimizer


class Stepper:
    """Stands for an optimizer."""


def led(leader: LeadingOptimizer, steps: list[Stepper]) -> list[bool]:
    return [leader.leads(one) for one in steps]


def test_the_first_one_leads_however_often_another_one_steps_in_between() -> None:
    leader, first, other = LeadingOptimizer(), Stepper(), Stepper()
    for number in range(40):
        assert led(leader, [first, *[other] * 20]) == [True, *[False] * 20]
        assert leader.missed == 0
        assert leader.missed_at_end == (0 if number else 20)  # of one that never came back nobody knows


def test_one_that_goes_on_alone_leads_and_its_steps_up_to_there_were_missed() -> None:
    leader, first, other = LeadingOptimizer(), Stepper(), Stepper()
    assert led(leader, [first] * 100) == [True] * 100
    assert led(leader, [other] * 63) == [False] * 63
    assert leader.missed_at_end == 63
    assert leader.leads(other)
    assert (leader.missed, leader.missed_at_end) == (63, 0)
    assert leader.leads(other)
    assert leader.missed == 0


def test_one_that_is_gone_leads_no_longer() -> None:
    leader, first, other = LeadingOptimizer(), Stepper(), Stepper()
    assert leader.leads(first)
    del first
    assert leader.leads(other)
    assert leader.missed == 0


def test_the_leader_may_be_kept() -> None:
    leader, first, other = LeadingOptimizer(), Stepper(), Stepper()
    assert leader.leads(first)
    assert not any(leader.leads(other, may_change=False) for _ in range(200))
