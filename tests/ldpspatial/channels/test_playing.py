"""Reports that are played have the law of the channel, and are counted where they belong."""

import numpy as np
import pytest
from scipy.stats import chisquare

from client_sdk import response_table
from ldpspatial import InputError, StampChannel
from ldpspatial.channels.playing import count_outputs, draw_reports, play

TABLE = response_table("dam", 2.0, 4)
FALSE_ALARM = 1e-9


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["system", "generator"])
def test_counts_have_the_law_of_the_channel(rng: np.random.Generator | None) -> None:
    people = np.zeros((4, 4), np.int64)
    people[0, 3], people[2, 1] = 40_000, 60_000
    rows, cols = (np.repeat(part, people.ravel()) for part in np.divmod(np.arange(16), 4))
    counts = play(TABLE, rows, cols, rng)
    channel = StampChannel(TABLE)
    support = channel.support
    assert counts[~support].sum() == 0
    expected = channel.forward(people.astype(np.float64))[support]
    assert chisquare(counts[support], expected).pvalue > FALSE_ALARM
    # The power: the same counts, moved by one column, do not pass.
    assert chisquare(np.roll(counts, 1)[support] + 1e-9, expected, sum_check=False).pvalue < 1e-30


def test_a_generator_repeats_itself_and_the_system_does_not() -> None:
    cells = np.tile(np.arange(4), 250)
    first, again = (draw_reports(TABLE, cells, cells, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    system, other = (draw_reports(TABLE, cells, cells) for _ in range(2))
    assert (np.array(system) != np.array(other)).any()


def test_each_report_is_counted_at_its_output_cell() -> None:
    radius, side = TABLE.radius, TABLE.cells + 2 * TABLE.radius
    counts = count_outputs(TABLE, np.array([-radius, 0, 0]), np.array([side - radius - 1, 0, 0]))
    assert counts.shape == (side, side)
    assert (counts[0, side - 1], counts[radius, radius], counts.sum()) == (1, 2, 3)
    empty = np.array([], np.int64)
    assert count_outputs(TABLE, empty, empty).sum() == 0


@pytest.mark.parametrize(
    ("rows", "cols", "rule"),
    [
        ([0, 1], [0], "must have one length, got 2 and 1"),
        ([-99], [0], r"rows must lie in \[-"),
        ([0], [99], r"cols must lie in \[-"),
    ],
)
def test_bad_cells_are_refused(rows: list, cols: list, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        count_outputs(TABLE, np.array(rows), np.array(cols))
