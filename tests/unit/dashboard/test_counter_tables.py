"""What the machine did meanwhile, on the page of steps: the terminal's numbers, in the words of the pages."""

from __future__ import annotations

import built_profiles
from deepscope.dashboard.pages.steps import counter_charts, counter_rows
from deepscope.records import CounterSeries

MIB = 1 << 20


def test_levels_have_the_units_of_the_terminal_and_the_blanks_of_the_pages() -> None:
    profile = built_profiles.training()
    profile.counters.append(
        CounterSeries(
            counter="disk read", series="sda", unit="B/s", mean=12.0 * MIB, smallest=0.0, largest=1536.0 * MIB
        )
    )
    levels = {row[0]: row[2:5] for row in counter_rows(profile).rows}
    assert levels == {
        "CPU": ["62.5 %", "99.0 %", "0.0 %"],
        "memory": ["3 GiB", "4.50 GiB", "1 GiB"],
        "page faults": ["0.25/s", "12,345/s", "0/s"],
        "GPU SM clock": ["1,410 MHz", "1,980 MHz", "1,305 MHz"],
        "counter of another": ["12.3", "1e+09", "-5"],
        "disk read": ["12 MiB/s", "1.50 GiB/s", "0 B/s"],
    }


def test_a_chart_says_which_steps_its_values_are_of() -> None:
    profile = built_profiles.training()
    profile.steps_per_block = 8
    (chart,) = counter_charts(profile)
    assert (chart.title, chart.unit, chart.steps, chart.end) == ("CPU", "percent", [0, 8], 16)
    assert chart.lines[0].values == [25.0, 99.0]
