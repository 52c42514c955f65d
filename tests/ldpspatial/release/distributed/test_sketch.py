from collections.abc import Sequence
from math import e, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.distributed.levels import sketch
from ldpspatial.release.distributed.levels.level_choice import promising_level
from ldpspatial.release.distributed.levels.map_levels import Levels
from ldpspatial.release.distributed.levels.sketch import (
    PRIME,
    CountMin,
    CountMinMinimum,
    CountMinOracle,
    RowHashes,
    SketchCounts,
    SketchEstimator,
)
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support import naive_levels as naive
from tests.support.cohorts import Recording, Silent

Ints = NDArray[np.int64]
SHAPE = (9, 14)
LEVELS = Levels(SHAPE)


def crowd(users: int, seed: int) -> Ints:
    """Most in one corner, some anywhere."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(3, size=users) * SHAPE[1] + rng.integers(4, size=users)
    anywhere = rng.integers(SHAPE[0] * SHAPE[1], size=users)
    cells: Ints = np.where(rng.random(users) < 0.7, corner, anywhere)
    return cells


def naive_keys(cells: Ints, level: int) -> list[int]:
    """Keys of the clients' cells: squares are numbered level by level, row by row."""
    numbers: dict[tuple[int, tuple[int, int]], int] = {}
    for finer in range(1, LEVELS.depth + 1):
        for at in sorted(naive.histogram([], SHAPE, finer)):
            numbers[finer, at] = len(numbers)
    places = (naive.cell_of(cell // SHAPE[1], cell % SHAPE[1], SHAPE, level) for cell in cells)
    return [numbers[level, at] for at in places]


@given(st.integers(1, PRIME - 1), st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_hashes_do_not_overflow(multiplier: int, offset: int, key: int) -> None:
    hashes = RowHashes(2000, np.array([multiplier]), np.array([offset]))
    expected = naive.sketch_place(multiplier, offset, key, 2000)
    assert hashes.places(0, np.array([key])).tolist() == [expected]


def test_largest_hash_does_not_overflow() -> None:
    largest = np.array([PRIME - 1])
    assert RowHashes(7, largest, largest).places(0, largest).tolist() == [
        naive.sketch_place(PRIME - 1, PRIME - 1, PRIME - 1, 7)
    ]


def test_two_keys_meet_no_more_often_than_in_one_of_width_rows() -> None:
    """200,000 rows: 1/50 within 5 standard deviations (false alarm 6e-7); shifts alone fail."""
    rows, width = 200_000, 50
    allowed = 5 * sqrt(rows * 0.02 * 0.98)
    hashes = RowHashes.draw(width, rows, np.random.default_rng(1))
    for keys in ((0, 1), (3, 1_398_099), (50, 100)):
        places = [
            (hashes.multipliers * key + hashes.offsets) % PRIME % hashes.width for key in keys
        ]
        assert places[0][7] == hashes.places(7, np.array(keys[:1]))[0]
        assert abs(np.count_nonzero(places[0] == places[1]) - rows / width) < allowed
    shifts = [(key + hashes.offsets) % PRIME % width for key in (50, 100)]
    assert abs(np.count_nonzero(shifts[0] == shifts[1]) - rows / width) > allowed


@pytest.mark.parametrize("per_level", [False, True])
def test_tables_are_those_of_the_twin(per_level: bool) -> None:
    cells, width = crowd(12, 2), 11
    found = CountMin(Silent(), width, 4, per_level).collect(
        LEVELS, cells, 1.0, np.random.default_rng(3)
    )
    keys = [naive_keys(cells, level) for level in range(1, LEVELS.depth + 1)]
    functions = found.hashes.multipliers.tolist(), found.hashes.offsets.tolist()
    for level in range(1, LEVELS.depth + 1):
        held = [[own] for own in keys[level - 1]] if per_level else list(zip(*keys, strict=True))
        expected = naive.sketch(held, *functions, width)
        assert (found.tables[level - 1] == expected).all()
    assert found.load == (1 if per_level else LEVELS.depth)


@settings(max_examples=20)
@given(st.sampled_from(["median", "minimum"]), st.integers(0, 2**32 - 1))
def test_counts_are_read_as_by_the_twin(estimator: SketchEstimator, seed: int) -> None:
    rng = np.random.default_rng(seed)
    hashes, table = RowHashes.draw(13, 5, rng), rng.integers(-9, 30, (5, 13)).astype(float)
    people, tables = (9,) * LEVELS.depth, [table] * LEVELS.depth
    found = SketchCounts(LEVELS, people, 1.0, tables, LEVELS.depth, hashes, estimator)
    for level in range(1, LEVELS.depth + 1):
        for row, column in np.ndindex(*LEVELS.sides(level)):
            key = LEVELS.start(level) + row * LEVELS.sides(level)[1] + column
            rows = [
                table[r, naive.sketch_place(int(a), int(b), key, 13)]
                for r, (a, b) in enumerate(zip(hashes.multipliers, hashes.offsets, strict=True))
            ]
            expected = sorted(rows)[2] if estimator == "median" else min(rows)
            assert found.counts(level)[row, column] == expected


def test_reading_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = CountMin(width=50).collect(LEVELS, crowd(90, 4), 1.0, np.random.default_rng(5))
    whole = found.counts(4)
    monkeypatch.setattr(sketch, "CHUNK", 7)
    assert (found.counts(4) == whole).all()


def test_without_noise_the_minimum_is_the_classic_bound() -> None:
    """Never below the count; above by more than e people / width with probability e^-depth.

    Of 200 sketches and some thousand cells each, 2e-9 of the cells would be (Cormode and
    Muthukrishnan 2005); the keys of all levels are people here.
    """
    cells, width = crowd(400, 6), 40
    truth = LEVELS.split(np.bincount(LEVELS.index_all(cells).ravel(), minlength=LEVELS.length))
    sketched = CountMinMinimum(Silent(), width, 20)
    for seed in range(20):
        found = sketched.collect(LEVELS, cells, 1.0, np.random.default_rng(seed))
        for level in range(1, LEVELS.depth + 1):
            above = found.counts(level) - truth[level - 1]
            assert above.min() >= 0
            assert above.max() <= e * 400 * LEVELS.depth / width


def test_with_noise_the_minimum_lies_below_and_the_median_does_not() -> None:
    cells, rng = crowd(4000, 7), np.random.default_rng(8)
    truth = np.bincount(LEVELS.index(cells, 2), minlength=LEVELS.cells(2)).reshape(LEVELS.sides(2))
    means = [
        np.mean([release.collect(LEVELS, cells, 1.0, rng).counts(2) - truth for _ in range(20)])
        for release in (CountMin(Cohort()), CountMinMinimum(Cohort()))
    ]
    assert abs(means[0]) < 20
    assert means[1] < -200


def test_one_table_for_all_levels_has_the_noise_of_all_its_ones() -> None:
    recording = Recording()
    CountMin(recording, 60, 5).collect(LEVELS, crowd(30, 9), 1.0, np.random.default_rng(10))
    CountMin(recording, 60, 5, True).collect(LEVELS, crowd(30, 9), 1.0, np.random.default_rng(10))
    for call in recording.calls:
        assert (call.epsilon, call.sensitivity) == (1.0, 5 * LEVELS.depth)
        assert (call.contributions.sum(axis=1) == 5 * LEVELS.depth).all()
    assert [len(call.found.counts) for call in recording.calls] == [300, 300 * LEVELS.depth]


@pytest.mark.parametrize("per_level", [False, True])
def test_a_row_estimates_products_with_counts_without_bias(per_level: bool) -> None:
    """400 sketches, 5 standard errors (false alarm 6e-7); without the share of others it fails."""
    cells, level, width = crowd(500, 11), 3, 30
    weights = np.linspace(0, 1, LEVELS.cells(level))
    exact = weights @ np.bincount(LEVELS.index(cells, level), minlength=LEVELS.cells(level))
    sketched, found = CountMin(width=width, depth=6, per_level=per_level), []
    for seed in range(400):
        counts = sketched.collect(LEVELS, cells, 4.0, np.random.default_rng(seed))
        found.append(np.mean([counts._product(level, weights, row) for row in range(6)]))
    allowed = 5 * np.std(found) / sqrt(400)
    assert abs(np.mean(found) - exact) < allowed
    load = 1 if per_level else LEVELS.depth
    assert weights.sum() * load * 500 / width > 2 * allowed


def test_squared_error_is_about_right_and_its_error_about_what_it_is() -> None:
    """100 sketches against the density from half of the rows; seeded."""
    rng, level = np.random.default_rng(16), 2
    truth = np.bincount(crowd(100_000, 17), minlength=SHAPE[0] * SHAPE[1]) / 100_000
    differences, errors, sizes = [], [], []
    for _ in range(100):
        cells = rng.choice(truth.size, 3000, p=truth)
        found = CountMin(width=1000).collect(LEVELS, cells, 1.0, rng)
        estimate, error = found.squared_error(level)
        halves = (found.read(level, range(first, 20, 2)) for first in (0, 1))
        densities = [LEVELS.density(counts, level).ravel() for counts in halves]
        actual = np.mean([np.square(d - truth).sum() for d in densities])
        differences.append(estimate - (actual - np.square(truth).sum()))
        errors.append(error)
        sizes.append(actual)
    assert abs(np.mean(differences)) < 0.5 * np.mean(errors) < 0.5 * np.mean(sizes)
    assert 0.5 < np.std(differences) / np.mean(errors) < 2


def test_the_chosen_level_is_near_the_best_on_average() -> None:
    """Ratio of mean squared errors over 12 seeded runs; the finest level does not pass."""
    rng = np.random.default_rng(12)
    rows, columns = (np.arange(side) / side - 0.4 for side in (32, 32))
    truth = np.exp(-(rows[:, None] ** 2 + columns**2) / 0.02)
    truth /= truth.sum()
    chosen, best, finest, levels = [], [], [], Levels((32, 32))
    for _ in range(12):
        cells = rng.choice(truth.size, 10_000, p=truth.ravel())
        found = CountMin(width=1000).collect(levels, cells, 1.0, rng)
        errors = [np.square(truth - 1 / truth.size).sum()]
        errors += [
            np.square(levels.density(found.counts(level), level) - truth).sum()
            for level in range(1, 6)
        ]
        chosen.append(errors[promising_level(found)])
        best.append(min(errors))
        finest.append(errors[-1])
    assert np.mean(chosen) < 1.5 * np.mean(best)
    assert np.mean(finest) > 2 * np.mean(best)


def test_the_oracle_chooses_by_the_truth() -> None:
    people = cells_by_user(range(8), [0, 0, 3, 5, 5, 5, 15, 15], (4, 4))
    oracle = CountMinOracle(Silent(), width=1000)
    released = oracle.release(people, 1.0, np.random.default_rng(13))
    assert released.density == pytest.approx(people.density)
    assert released.facts == {"vector_length": 20_000, "rounds": 1, "level": 2, "survivors": 8}


def test_published_lengths() -> None:
    levels = Levels((1024, 1024))
    assert CountMin().vector_length(levels) == 40_000
    assert CountMin(per_level=True).vector_length(levels) == 400_000


def test_tables_too_long_for_the_hash_are_refused() -> None:
    with pytest.raises(InputError, match="must be below 2147483647, got 4000000000"):
        CountMin(width=200_000_000).collect(LEVELS, crowd(3, 14), 1.0, np.random.default_rng(15))


def test_with_few_places_a_row_estimates_products_without_bias() -> None:
    """Three places, where a third of all others is seen too: of 20,000 rows, 5 standard errors."""
    rows, width, levels = 20_000, 3, Levels((4, 4))
    hashes = RowHashes.draw(width, rows, np.random.default_rng(2))
    cells = np.random.default_rng(1).choice(16, 60, p=np.arange(16) / 120)
    at = levels.index(cells, 2)
    keys = levels.start(2) + at
    table = np.array([np.bincount(hashes.places(r, keys), minlength=width) for r in range(rows)])
    tables = [np.zeros(table.shape), table.astype(float)]
    found = SketchCounts(levels, (60, 60), 1.0, tables, 1, hashes, "median")
    weights = np.linspace(0, 1, 16)
    products = [found._product(2, weights, row) for row in range(rows)]
    exact = weights @ np.bincount(at, minlength=16)
    allowed = 5 * np.std(products) / sqrt(rows)
    assert abs(np.mean(products) - exact) < allowed < exact / 10


def test_a_person_is_compared_with_the_others_and_not_with_oneself() -> None:
    """Of few people in many places no two cells meet in most rows: the answer is known."""
    cells, level = crowd(100, 4), LEVELS.depth
    found = CountMin(Silent(), 5_000, 8, per_level=True).collect(
        LEVELS, cells, 4.0, np.random.default_rng(5)
    )
    counts = np.bincount(LEVELS.index(cells, level), minlength=LEVELS.cells(level))
    areas = LEVELS.areas(level).ravel()
    expected = (counts**2 / areas).sum() / 100**2
    expected -= 2 * (np.maximum(counts - 1, 0) * counts / areas).sum() / 100**2
    assert found.squared_error(level)[0] == pytest.approx(expected, rel=0.01)


def test_the_standard_error_is_that_of_the_medians_of_the_rows() -> None:
    """Of products that are 1000 quantiles of a normal law in each half of the rows."""
    depth, spread = 2000, 0.03
    told = np.repeat(norm.ppf((np.arange(1000) + 0.5) / 1000), 2) * spread

    class Told(SketchCounts):
        def _product(self, level: int, weights: NDArray[np.float64], row: int) -> float:
            return float(told[row])

    levels, rng = Levels((2, 2)), np.random.default_rng(1)
    hashes = RowHashes.draw(50, depth, rng)
    tables = [np.full((depth, 50), 7.0)] * levels.depth
    found = Told(levels, (28,) * levels.depth, 1.0, tables, 1, hashes, "median")
    assert found.squared_error(1)[1] == pytest.approx(
        2 * sqrt(pi / 2) * spread / sqrt(1000), rel=0.01
    )


def test_no_row_is_compared_with_a_density_that_it_is_part_of() -> None:
    seen: list[tuple[set[int], list[int]]] = []

    class Watched(SketchCounts):
        def read(self, level: int, rows: Sequence[int]) -> NDArray[np.float64]:
            seen.append((set(rows), []))
            return super().read(level, rows)

        def _product(self, level: int, weights: NDArray[np.float64], row: int) -> float:
            seen[-1][1].append(row)
            return super()._product(level, weights, row)

    found = CountMin(width=50).collect(LEVELS, crowd(90, 4), 1.0, np.random.default_rng(5))
    Watched(**vars(found)).squared_error(2)
    assert len(seen) == 2
    for used, held_out in seen:
        assert used.isdisjoint(held_out)
        assert used.union(held_out) == set(range(20))
