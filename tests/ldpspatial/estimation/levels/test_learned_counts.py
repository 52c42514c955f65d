"""People of nodes by a learned law of counts: against a slow twin, and where it says nothing."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.estimation.levels import learned_counts as module
from ldpspatial.estimation.levels.law_of_counts import (
    AT_FIRST,
    FEW_OF_SOME,
    NEIGHBOURS_FIRST,
    WHOLE,
    Posterior,
)
from ldpspatial.estimation.levels.learned_counts import (
    learned_counts,
    learned_leaves,
)
from ldpspatial.estimation.levels.shares import nearest_shares
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.central.masses import density_of_masses

Array = NDArray[np.float64]


def level_of(truth: Array, scale: float, seed: int) -> tuple[Quadtree, NoisyLevel, NoisyLevel]:
    """Return a level of single cells with Laplace noise, and the whole."""
    tree = Quadtree((truth.shape[0], truth.shape[1]))
    nodes = tree.numbers(tree.depth)
    right = tree.pooled(tree.depth, nodes, truth)
    noise = np.random.default_rng(seed).laplace(0, scale, len(nodes))
    whole = NoisyLevel(0, np.array([0]), np.array([truth.sum()]), 0.0)
    return tree, whole, NoisyLevel(tree.depth, nodes, right + noise, 2 * scale**2)


def cells_of(tree: Quadtree, whole: NoisyLevel, cells: NoisyLevel) -> Array:
    between = [NoisyLevel.unmeasured(k, tree.numbers(k)) for k in range(1, tree.depth)]
    return combined(tree, [whole, *between, cells]).density


def test_whole_people_are_found_under_noise_of_less_than_half_a_person() -> None:
    """The nearest map is right in .57 of the cells, the learned one in .88.

    That counts are whole is nowhere said: half people are found as well.
    """
    rng = np.random.default_rng(3)
    truth = rng.poisson(rng.gamma(0.3, 3, (32, 32))).astype(np.float64)
    for part in (1.0, 0.5):
        tree, whole, cells = level_of(truth * part, part / 7, 4)
        found = cells_of(tree, whole, cells) * truth.sum()
        assert np.mean(np.abs(found - truth) < 0.05) > 0.8


def test_many_people_are_told_whole_where_sums_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over L1 of a law that knows nothing of it: .43 to .58 in 19 of 20 seeds, 1 in the other."""
    truth = np.random.default_rng(21).poisson(30, (32, 32)).astype(np.float64)
    noisy = {part: level_of(truth * part, 0.2, 22) for part in (1.0, 0.5)}
    found = {part: cells_of(*given) for part, given in noisy.items()}
    monkeypatch.setattr(module, "are_whole", lambda sums, variance: False)
    others = {part: cells_of(*given) for part, given in noisy.items()}
    share = truth / truth.sum()
    assert np.abs(found[1.0] - share).sum() < 0.85 * np.abs(others[1.0] - share).sum()
    assert (found[0.5] == others[0.5]).all()


@pytest.mark.parametrize("other", [{"step": 1.0}, {"excess": 0.5}, {"per_person": 0.1}])
def test_whole_people_are_asked_for_under_noise_of_laplace_alone(
    other: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = np.random.default_rng(23).poisson(30, (16, 16)).astype(np.float64)
    tree, whole, noisy = level_of(truth, 0.2, 24)
    asked: list[float] = []
    monkeypatch.setattr(module, "are_whole", lambda sums, variance: asked.append(variance))
    cells_of(tree, whole, replace(noisy, sums=np.rint(noisy.sums), **other))
    assert not asked
    cells_of(tree, whole, noisy)
    assert asked


@pytest.mark.parametrize("scale", [0.2, 1.0, 10.0])
def test_single_cells_are_nearer_than_the_nearest_map(scale: float) -> None:
    """In L1 and in squares, by a tenth at least; quarters and addresses, never tuned on."""
    rng = np.random.default_rng(5)
    quarters = 64 * rng.random((12, 2))[rng.integers(0, 12, 6000)] + rng.normal(0, 3, (6000, 2))
    addresses = 64 * rng.random((80, 2))[rng.zipf(1.6, 6000) % 80]
    cells = np.clip(np.concatenate([quarters, addresses]), 0, 63).astype(int) @ (64, 1)
    truth = np.bincount(cells, minlength=4096).reshape(64, 64).astype(np.float64)
    tree, whole, noisy = level_of(truth, scale, 6)
    share = truth / truth.sum()
    learned = cells_of(tree, whole, noisy)
    nearest = density_of_masses(tree.spread(tree.depth, noisy.nodes, noisy.sums), "nearest")
    for power in (1, 2):
        errors = [(np.abs(each - share) ** power).sum() for each in (learned, nearest)]
        assert errors[0] < 0.9 * errors[1]


@pytest.mark.parametrize("scale", [3.0, 10.0])
def test_smooth_maps_are_told_by_their_neighbours(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wide blob: squares of errors are less than .95 of those without neighbours.

    Over 20 seeds they were .56 to .87.
    """
    places = np.clip(np.random.default_rng(9).normal(16, 6, (10_000, 2)), 0, 31).astype(int)
    truth = np.bincount(places @ (32, 1), minlength=1024).reshape(32, 32).astype(np.float64)
    tree, whole, noisy = level_of(truth, scale, 10)
    share = truth / truth.sum()
    squares = ((cells_of(tree, whole, noisy) - share) ** 2).sum()
    for way in ("foretold", "foretold_by_law"):
        monkeypatch.setattr(module, way, lambda tree, level, sums: np.zeros((len(sums), 0)))
    assert squares < 0.95 * ((cells_of(tree, whole, noisy) - share) ** 2).sum()


def village(seed: int) -> Array:
    """Return 20,000 people of whom 97 of 100 are in one blob, the others evenly over all cells."""
    rng = np.random.default_rng(seed)
    blob = np.clip(rng.normal([9, 22], 0.4, (19_400, 2)), 0, 31)
    places = np.concatenate([blob, 32 * rng.random((600, 2))]).astype(int)
    return np.bincount(places @ (32, 1), minlength=1024).reshape(32, 32).astype(np.float64)


def test_few_people_everywhere_are_not_told_by_the_noise_of_their_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a person a node under noise of two: the others are told two thirds as far off at most.

    In L1 of squares of 16 nodes, over the law that is learned once: of 20 seeds it was .31 to .63
    in 16, and in the others chance did not tell.
    """
    truth = village(11)
    tree, whole, noisy = level_of(truth, 2.0, 12)

    def off() -> float:
        missing = cells_of(tree, whole, noisy) - truth / truth.sum()
        return float(np.abs(missing.reshape(8, 4, 8, 4).sum((1, 3))).sum())

    again = off()
    monkeypatch.setattr(module, "chance_of_less", lambda *given: 1.0)
    assert again < off() * 2 / 3


@pytest.mark.parametrize(
    ("scale", "other", "asked"),
    [(2.0, {}, True), (0.7, {}, False), (2.0, {"step": 3.0}, False), (2.0, {"step": 1.0}, True)],
)
def test_a_law_is_learned_again_under_noise_of_more_than_a_person(
    scale: float, other: dict[str, float], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under less, and where noise is in steps of more, fractions are all that would come of it."""
    heard: list[bool] = []
    monkeypatch.setattr(module, "chance_of_less", lambda *given: heard.append(True) or 1.0)
    tree, whole, noisy = level_of(village(13), scale, 14)
    cells_of(tree, whole, replace(noisy, **other))
    assert bool(heard) == asked


@pytest.mark.parametrize(
    ("people", "held", "chances", "of_mean"),
    [
        (0.6, 0.36, (0.04, 0.05), 0.5),
        (0.6, 0.34, (0.04, 0.05), 0.5),
        (0.4, 0.36, (0.04, 0.05), 1.0),
        (0.4, 0.34, (0.04, 0.05), 0.0),
        (0.4, 0.36, (0.04, 0.04), 0.0),
        (0.4, 0.36, (0.06,), 0.0),
    ],
)
def test_where_groups_hold_few_means_are_taken_of_a_law_learned_again(
    monkeypatch: pytest.MonkeyPatch,
    people: float,
    held: float,
    chances: tuple[float, ...],
    of_mean: float,
) -> None:
    """Of nodes that hold more, half; medians where noise was not told, or is told still more.

    And where the sum of the group is within two deviations of nobody: .353 a node.
    """
    tree = Quadtree((8, 8))
    begun: list[tuple[float, float]] = []
    doubts: list[float] = []

    def posterior(*given: float | Array) -> Posterior:
        *_, by_others, _, at_first = given
        begun.append((float(np.mean(by_others)), float(at_first)))
        return Posterior(np.full(64, people), np.full(64, 2.0), np.full(64, at_first))

    def balanced(found: Array, noise: float, doubt: float, *_: object) -> Array:
        doubts.append(doubt)
        return found

    for way, tells in (("foretold", 5.0), ("foretold_by_law", 7.0)):
        monkeypatch.setattr(module, way, lambda *given, tells=tells: np.full((64, 7), tells))
    monkeypatch.setattr(module, "posterior", posterior)
    heard = iter(chances)
    monkeypatch.setattr(module, "chance_of_less", lambda *given: next(heard))
    monkeypatch.setattr(module, "_adding_up", lambda found, total: found)
    monkeypatch.setattr(module, "balanced", balanced)
    sums = np.full(64, held)
    level = NoisyLevel(3, tree.numbers(3), sums, 2.0)
    found = learned_counts(tree, level, *of_levels(tree, sums, 2.0), np.full(64, 3.0))
    assert found == pytest.approx(2.0 + of_mean * (people - 2.0))
    assert begun == [(5.0, AT_FIRST), (7.0, NEIGHBOURS_FIRST)][: len(chances)]
    taken = len(chances) == 2 and chances[1] > chances[0]
    assert doubts == [pytest.approx(64 * (NEIGHBOURS_FIRST if taken else AT_FIRST))]
    assert next(heard, None) is None


def test_few_are_told_on_a_lake_by_a_law_that_is_learned_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quarter of the map is empty, the rest is evenly full.

    In the mean of eight maps .5 to .7 times as many are on the lake as by means wherever nodes hold
    few, over 64 seeds.
    """
    truth = np.full((32, 32), 10_000 / 768)
    truth[16:, :16] = 0.0
    told = []
    for least in (module.SOMEBODY, -np.inf):
        monkeypatch.setattr(module, "SOMEBODY", least)
        on_lake = []
        for seed in range(8):
            chances = iter((0.0, 1.0))
            monkeypatch.setattr(module, "chance_of_less", lambda *given, of=chances: next(of))
            on_lake.append(cells_of(*level_of(truth, 3.0, seed))[16:, :16].sum())
        told.append(np.mean(on_lake))
    assert told[0] < 0.8 * told[1]


def test_what_small_counts_lack_is_not_taken_from_large_ones() -> None:
    """One cell of half the people, and noise that hides all others: it stays half."""
    truth = np.full((16, 16), 1.0)
    truth[3, 4] = 255.0
    tree, whole, cells = level_of(truth, 3.0, 8)
    assert cells_of(tree, whole, cells)[3, 4] == pytest.approx(0.5, abs=0.03)


def test_where_nothing_can_be_learned_people_stay_as_they_are() -> None:
    rng = np.random.default_rng(7)
    tree = Quadtree((8, 8))
    nodes = tree.numbers(3)
    sums = rng.normal(5, 3, 64)
    people = rng.random(64)
    for variance, given in ((np.inf, people), (0.0, people), (1e9, people), (1.0, 0 * people)):
        level = NoisyLevel(3, nodes, sums, variance)
        assert learned_counts(tree, level, [sums], [sums], given) is given
    few = NoisyLevel(2, tree.numbers(2), sums[:16], 1.0)
    told = learned_counts(tree, few, [sums[:16]], [sums[:16]], people[:16])
    assert told.tolist() == people[:16].tolist()


@pytest.mark.parametrize(
    ("people", "taken"),
    [(0.6, "median"), (0.4, "both"), (0.2, "both"), (0.11, "both"), (0.09, "none")],
)
def test_what_is_taken_of_the_posterior_depends_on_people_over_noise(
    monkeypatch: pytest.MonkeyPatch, people: float, taken: str
) -> None:
    """Noise has scale 1. One node of 64 has a mean of 4 and a median of 2, the others 1 and 1."""
    tree = Quadtree((8, 8))
    nodes = tree.numbers(3)
    only = nodes == 5
    law = Posterior(1.0 + 3 * only, 1.0 + only, np.zeros(64))
    monkeypatch.setattr(module, "posterior", lambda *args: law)
    monkeypatch.setattr(module, "_adding_up", lambda found, total: found)
    monkeypatch.setattr(module, "balanced", lambda found, *rest: found)
    given = np.full(64, people)
    level = NoisyLevel(3, nodes, given, 2.0)
    found = learned_counts(tree, level, *of_levels(tree, given, 2.0), given)
    expected = {"median": law.median, "both": (law.mean + law.median) / 2, "none": given}
    assert found.tolist() == expected[taken].tolist()


def of_levels(tree: Quadtree, sums: Array, variance: float) -> tuple[list[Array], list[Array]]:
    """Return sums of all nodes of each level and their variances, from those of the finest one."""
    nodes = tree.numbers(tree.depth)
    places = [
        np.searchsorted(tree.numbers(level), nodes >> 2 * (tree.depth - level))
        for level in range(tree.depth + 1)
    ]
    every = np.full(len(nodes), variance)
    both = [(np.bincount(at, sums), np.bincount(at, every)) for at in places]
    return [of[0] for of in both], [of[1] for of in both]


@pytest.mark.parametrize("value", [-1e9, -1.0, 0.0, 1e-9, 1.0, 1e12])
@pytest.mark.parametrize("variance", [0.0, 1e-9, 1.0, 1e12])
@pytest.mark.parametrize("per_person", [0.0, 0.1])
def test_any_sums_give_people(value: float, variance: float, per_person: float) -> None:
    """Whatever the sums are there is a map, without a warning: the release is total."""
    tree = Quadtree((9, 8))
    nodes = tree.numbers(4)
    for sums in (np.full(len(nodes), value), np.where(nodes == nodes[5], value, 0.0)):
        for people in (np.ones(len(nodes)), np.maximum(sums, 0.0)):
            level = NoisyLevel(4, nodes, sums, variance, per_person)
            seen = of_levels(tree, sums, variance + per_person)
            found = learned_counts(tree, level, *seen, people)
            assert found.min() >= 0
            assert found.sum() == pytest.approx(people.sum())
            leaves = learned_leaves(sums, np.full(len(sums), variance), people)
            assert leaves.min() >= 0
            assert leaves.sum() == pytest.approx(people.sum())


@pytest.mark.parametrize("counted", [1.0, 0.9])
@pytest.mark.parametrize("beyond", [-2, -1, 0, 1, 2])
def test_maps_are_sound_on_both_sides_of_the_longest_law(counted: float, beyond: int) -> None:
    """Most cells are empty, and the fullest hold as many as a law of whole people does, or not.

    The mean squared error is at most twice that of the nearest map: over these and other seeds it
    was .7 to 1.4 times as large.
    """
    rng = np.random.default_rng(9)
    longest = WHOLE - 1 if counted == 1 else FEW_OF_SOME + 1
    truth = rng.integers(1, longest + beyond, 1024, endpoint=True) * (rng.random(1024) < 0.2)
    p = np.exp(-2.5)
    there = rng.binomial(truth, counted)
    sums = (there + rng.geometric(1 - p, 1024) - rng.geometric(1 - p, 1024)) / counted
    tree = Quadtree((32, 32))
    variance = 2 * p / (1 - p) ** 2 / counted**2
    level = NoisyLevel(5, tree.numbers(5), sums, variance, 1 / counted - 1, 1 / counted)
    every = np.ones((1, len(sums)), bool)
    nearest = nearest_shares(sums[np.newaxis], np.array([float(truth.sum())]), every)[0]
    found = learned_counts(tree, level, *of_levels(tree, sums, variance), nearest)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(truth.sum())
    error, other = (((each - truth) ** 2).mean() for each in (found, nearest))
    assert error <= 2 * other


def test_who_is_told_by_the_sum_alone_is_not_told_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who fails makes crowds as unsure as their sums are, and those of few people less."""
    heard: list[tuple[Array, Array]] = []

    def chance_of_less(told: Array, noise: Array, doubt: Array, *_: object) -> float:
        heard.append((noise, doubt))
        return 1.0

    monkeypatch.setattr(module, "chance_of_less", chance_of_less)
    tree = Quadtree((16, 16))
    sums = np.where(tree.numbers(4) % 16 == 0, 900.0, 2.0)
    level = NoisyLevel(4, tree.numbers(4), sums, 2.0, per_person=0.5)
    totals, variances = of_levels(tree, sums, 2.0)
    variances[-1] = 2.0 + 0.5 * sums
    learned_counts(tree, level, totals, variances, sums)
    ((noise, doubt),) = heard
    assert (doubt[sums > 2] == noise[sums > 2]).all()
    assert (doubt[sums == 2] < 1).all()


def test_noise_of_who_was_counted_counts_as_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    def balanced(found: NDArray, noise: float, *_: object) -> NDArray:
        heard.append(noise)
        return found

    monkeypatch.setattr(module, "balanced", balanced)
    tree, people = Quadtree((16, 16)), np.full(256, 9.0)
    level = NoisyLevel(4, tree.numbers(4), people, 1.0, per_person=0.5)
    module.learned_counts(tree, level, [people], [np.ones(256)], people)
    assert heard == [256 * 1.0 + 0.5 * 256 * 9.0]
