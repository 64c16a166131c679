"""How long the sanity check takes, told by its actions."""

from deepscope.lightning.runs import SanityCheck


def test_it_lasts_from_the_first_action_to_the_last_without_what_recording_does():
    check = SanityCheck()
    for start, end in ((100, 110), (200, 250), (300, 300), (400, 480)):
        check.note(start, end)
    assert check.duration_ns == (200 - 110) + (300 - 250) + (400 - 300)


def test_without_a_check_it_takes_no_time():
    assert SanityCheck().duration_ns == 0
