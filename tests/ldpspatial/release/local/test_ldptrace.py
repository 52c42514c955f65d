"""LDPTrace: constant numbers of reports, the Markov model, synthesis, what is spent."""

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid
from ldpspatial import wasserstein
from ldpspatial.datasets import density_walks
from ldpspatial.errors import InputError
from ldpspatial.places.users import Trails, UserCells, cells_by_user, user_cells
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.sets.set_reports import on_simplex
from ldpspatial.release.local.sets.unary import counts_of_holders
from ldpspatial.release.local.trajectories.heard_law import heard_law
from ldpspatial.release.local.trajectories.ldptrace import (
    END,
    LENGTH_PART,
    MOVE,
    START,
    LdpTrace,
    collect,
    drawn_slots,
    length_bins,
    published_length,
    slot_values,
)
from ldpspatial.release.local.trajectories.move_model import (
    MarkovModel,
    MoveDomain,
    last_cells,
    synthesise,
)
from ldpspatial.release.local.trajectories.trajectory_release import share_of, without_stays
from tests.support import naive_local_trails as naive


def walkers(walks: int, side: int) -> UserCells:
    crowd = np.exp(-np.add.outer(np.arange(12), np.arange(12)) / 3)
    crowd[crowd < 0.1] = 0
    points = density_walks(crowd, walks, np.random.default_rng(1), longest=8)
    return user_cells(points, Grid.plane(0, 0, 1.0, side))


def _sent(trails: Trails, side: int, longest: int) -> np.ndarray:
    """What each user holds in each slot, shape (users, longest + 1)."""
    domain = MoveDomain(side)
    return np.stack([slot_values(trails, domain, k, longest)[1] for k in range(longest + 1)], 1)


def test_every_user_sends_as_many_reports_whatever_the_length() -> None:
    longest, side = 6, 3
    trails = naive.trails([4], [0, 1], [0, 0, 0, 1, 4, 8])
    sent = _sent(trails, side, longest)
    assert sent.shape == (3, longest + 1)  # one a slot: no length in their number
    published = [min(length, longest) + 1 for length in trails.lengths]
    assert published == [2, 3, 7]  # start, moves, end, of which none is padding: it tells lengths
    none = MoveDomain(side).none
    assert (sent[:, 1:-1] == none).sum(axis=1).tolist() == [5, 4, 0]
    assert sent[:, 0].tolist() == [4, 0, 0]
    assert sent[:, -1].tolist() == [4, 1, 8]


def test_slots_hold_the_moves_and_the_domain_is_all_of_them() -> None:
    for side in (1, 2, 3, 4):
        domain, pairs = MoveDomain(side), naive.moves(side)
        assert domain.none == len(pairs)
        before, after = np.array(pairs).T
        assert domain.of(before, after).tolist() == list(range(len(pairs)))
        found = [(a, b) for a, b in zip(before, after, strict=True) if b in domain.targets[a]]
        assert found == pairs
    kinds = [slot_values(naive.trails([0, 1]), MoveDomain(2), k, 2)[0] for k in range(3)]
    assert kinds == [START, MOVE, END]


def test_the_parts_of_epsilon_sum_to_it_and_floats_to_no_more() -> None:
    for release, longest in product((LdpTrace("all"), LdpTrace("one")), (1, 8, 182, 256)):
        part = release.report_part(longest)
        reports = longest + 1 if release.slots == "all" else 1
        assert LENGTH_PART + reports * part == 1
        for epsilon in (0.01, 1.5, 0.1 + 0.2, 20.0):
            spent = Fraction(share_of(epsilon, LENGTH_PART))
            spent += reports * Fraction(share_of(epsilon, part))
            assert spent <= Fraction(epsilon)


def test_the_claim_holds_exactly_for_reports_enumerated_bit_by_bit() -> None:
    # All reports of a user (length bits, slots of bits) on a map of one cell, at most two points:
    # trajectories of one point and of two. Bins 1, 2; domains of 1, 2 and 1 values.
    epsilon, sizes = 1.7, (2, 1, 2, 1)
    parts = [float(LENGTH_PART * Fraction(epsilon))] + [0.3 * epsilon] * 3
    inputs = []
    for user in ([0], [0, 0]):
        inputs.append((len(user) - 1, *_sent(naive.trails(user), 1, 2)[0]))

    def law(values: tuple[int, ...]) -> np.ndarray:
        chances = np.ones(1)
        for value, size, spent in zip(values, sizes, parts, strict=True):
            ones = np.where(np.arange(size) == value, 0.5, 1 / (exp(spent) + 1))
            for one in ones:
                chances = np.outer(chances, [1 - one, one]).ravel()
        return chances

    short, long = map(law, inputs)
    assert short.sum() == pytest.approx(1, abs=1e-12)
    assert len(short) == 2 ** sum(sizes)
    worst = np.abs(np.log(short / long)).max()
    assert worst <= epsilon + 1e-12
    assert worst == pytest.approx(0.4 * epsilon)  # the length and the only slot that differs


def _bits(user: list[int], epsilon: float, runs: int, seed: int) -> np.ndarray:
    """Log-likelihood ratio of all that one user sends: of a stay of one point or of four."""
    rng, longest, side = np.random.default_rng(seed), 4, 2
    domain = MoveDomain(side)
    trails = naive.trails(user, [0], [0, 1, 3, 2])
    bins = length_bins(4)
    spent = share_of(epsilon, LdpTrace("all").report_part(longest))
    first, *others = _sent(trails, side, longest)
    score = np.zeros(runs)
    values = [(len(user) - 1, 0, 3, len(bins), share_of(epsilon, LENGTH_PART))]
    sizes = [4, *[domain.none + 1] * 3, 4]
    values += [(own, a, b, m, spent) for own, a, b, m in zip(first, *others, sizes, strict=True)]
    for own, a, b, size, loss in values:
        holds = np.tile(np.arange(size) == own, runs).astype(np.int64)
        bits = counts_of_holders(holds, 1, loss, rng).reshape(runs, size)
        score += loss * (bits[:, a] - bits[:, b])
    return score


def test_a_short_trajectory_cannot_be_told_from_a_long_one_beyond_epsilon() -> None:
    # 2,000 users a side, the best statistic. At five times epsilon it is seen.
    for epsilon, least, most in ((1.0, 0.0, 1.0), (5.0, 1.0, 5.0)):
        samples = [_bits(user, epsilon, 2000, k) for k, user in enumerate(([0], [0, 1, 3, 2]))]
        assert least <= lower_bound_epsilon(*samples) <= most


@pytest.mark.parametrize("longest", [1, 2, 5])
def test_the_one_slot_is_drawn_by_its_kind_and_moves_alike(longest: int) -> None:
    # Chi-square; false alarms at 1e-6. Slots that are drawn alike are told.
    shares = np.array([4, *np.full(longest - 1, 1 / max(longest - 1, 1)), 1])
    found = np.bincount(drawn_slots(60_000, longest, np.random.default_rng(longest)))
    law = shares / shares.sum() * found.sum()
    assert stats.chisquare(found, law).pvalue > 1e-6
    assert stats.chisquare(found).pvalue < 1e-6


def test_one_slot_is_nearer_than_all_where_people_crowd_and_level_where_nothing_is_heard() -> None:
    users = walkers(10_000, 6)
    errors = {
        (slots, epsilon): wasserstein(
            users.density, LdpTrace(slots).release(users, epsilon, np.random.default_rng(3)).density
        )
        for slots in ("all", "one")
        for epsilon in (0.1, 5.0)
    }
    assert errors["one", 5.0] < 0.6 * errors["all", 5.0]
    assert errors["one", 0.1] == pytest.approx(errors["all", 0.1], rel=0.2)


def test_bins_of_lengths_and_the_published_length() -> None:
    assert length_bins(1).tolist() == [1]
    assert length_bins(20).tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 20]
    assert length_bins(256)[-3:].tolist() == [128, 182, 256]
    bins = length_bins(8)
    assert published_length(np.array([0.5, 0.4, 0.1, 0, 0, 0]), bins) == 2
    assert published_length(np.array([0.5, 0.39, 0, 0, 0, 0.11]), bins) == 8
    assert published_length(np.array([1.0, 0, 0, 0, 0, 0]), bins) == 1


@pytest.mark.parametrize("choice", ["all", "one"])
def test_the_model_is_that_of_the_trajectories_where_noise_is_little(choice: str) -> None:
    users = np.repeat([[0, 1, 3], [2, 3, 3]], [30_000, 10_000], axis=0)
    trails = Trails(np.arange(0, 120_001, 3), users.ravel())
    rng = np.random.default_rng(1)
    slot = drawn_slots(40_000, 3, rng) if choice == "one" else None
    model = collect(trails, MoveDomain(2), 3, slot, 15.0, rng)
    assert np.allclose(model.starts, [0.75, 0, 0.25, 0], atol=0.03)
    assert np.allclose(model.ends, [0, 0, 0, 1], atol=0.03)
    moves = model.moves[MoveDomain(2).targets >= 0]
    wanted = np.zeros((4, 4))
    wanted[[0, 1, 2, 3], [1, 3, 3, 3]] = [0.375, 0.375, 0.125, 0.125]
    assert np.allclose(moves.reshape(4, 4), wanted, atol=0.03)


def _model(side: int, seed: int = 1) -> MarkovModel:
    rng = np.random.default_rng(seed)
    cells, domain = side * side, MoveDomain(side)
    moves = np.where(domain.targets >= 0, rng.random((cells, 9)), 0.0)
    ends = np.full(cells, 1 / cells)
    return MarkovModel(domain, rng.dirichlet(np.ones(cells)), moves, ends)


def test_synthesis_follows_the_model() -> None:
    # Chi-square of the second cell given the first; false alarms at 1e-6.
    model = _model(2)
    found = synthesise(model, np.full(30_000, 3), np.random.default_rng(2))
    assert (found.lengths == 3).all()
    walks = found.cells.reshape(-1, 3)
    targets = MoveDomain(2).targets
    for cell in range(4):
        ways = targets[cell] >= 0
        after = np.bincount(walks[walks[:, 0] == cell, 1], minlength=4)[targets[cell, ways]]
        law = model.moves[cell, ways] / model.moves[cell].sum() * after.sum()
        assert stats.chisquare(after, law).pvalue > 1e-6
        assert stats.chisquare(after).pvalue < 1e-6  # ways alike are told


def test_the_law_of_the_last_cell_is_the_power_of_the_chain_and_ends_lean_to_the_reported() -> None:
    model, domain = _model(3), MoveDomain(3)
    chain = np.zeros((9, 9))
    for cell, way in product(range(9), range(9)):
        if domain.targets[cell, way] >= 0:
            share = model.moves[cell, way] / model.moves[cell].sum()
            chain[cell, domain.targets[cell, way]] += share
    lengths = np.repeat([1, 4], [100, 300])
    law = 0.25 * model.starts + 0.75 * model.starts @ np.linalg.matrix_power(chain, 3)
    assert np.allclose(last_cells(model, lengths), law, atol=1e-12)
    # Where reports agree with the moves, the last move is a move like any other.
    agreed = MarkovModel(domain, model.starts, model.moves, last_cells(model, np.full(20_000, 4)))
    pulled = MarkovModel(domain, model.starts, model.moves, np.eye(9)[8])
    for ends, wanted in ((agreed, agreed.ends), (pulled, None)):
        walks = synthesise(ends, np.full(20_000, 4), np.random.default_rng(3)).cells.reshape(-1, 4)
        counts = np.bincount(walks[:, -1], minlength=9)
        if wanted is None:
            assert set(walks[np.isin(walks[:, -2], [4, 5, 7, 8]), -1]) == {8}
        else:
            assert stats.chisquare(counts, wanted * counts.sum()).pvalue > 1e-6


def test_a_walk_ends_where_no_move_leads_on() -> None:
    model = MarkovModel(MoveDomain(2), np.array([1.0, 0, 0, 0]), np.zeros((4, 9)), np.full(4, 0.25))
    found = synthesise(model, np.array([5, 1]), np.random.default_rng(1))
    assert found.lengths.tolist() == [1, 1]
    assert last_cells(model, np.array([5, 1])).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("choice", ["all", "one"])
@pytest.mark.parametrize("weigh", ["user", "visit"])
def test_it_finds_the_map(choice: str, weigh: str) -> None:
    users = walkers(20_000, 4)
    release = LdpTrace(choice, weigh, 8, stays=True)  # type: ignore[arg-type]
    found = release.release(users, 20.0, np.random.default_rng(2))
    assert wasserstein(users.density, np.full((4, 4), 1 / 16)) > 1.0
    assert wasserstein(users.density, found.density) < 0.35
    assert found.facts["length"] == 8
    assert found.facts["reports_per_user"] == (10 if choice == "all" else 2)


def test_local_privacy_is_that_of_the_report_of_the_first_cell() -> None:
    epsilon, side = 3.0, 2
    spent = float(LdpTrace("one").report_part(256)) * epsilon
    q, distances, mean = 1 / (exp(spent) + 1), cell_distances((side, side)), 0.0
    for bits in product((0, 1), repeat=4):
        weights = np.where(bits, exp(spent), 1.0)
        for cell in range(4):
            chances = [
                (0.5 if x == cell else q) if bit else (0.5 if x == cell else 1 - q)
                for x, bit in enumerate(bits)
            ]
            mean += np.prod(chances) / 4 * (distances[cell] @ weights) / weights.sum()
    assert LdpTrace("one").local_privacy(side, epsilon) == pytest.approx(mean, rel=1e-10)
    assert LdpTrace("one").local_privacy(1, epsilon) == 0
    # All slots: the share of epsilon that is left where trajectories have a point a cell.
    held = LdpTrace("all", most_points=9).local_privacy(3, epsilon)
    assert LdpTrace("all").local_privacy(3, epsilon) == held


def test_long_trajectories_are_cut_at_the_public_length() -> None:
    users = cells_by_user(np.zeros(50, int), np.tile([0, 8], 25), (3, 3))
    found = LdpTrace("all", most_points=1).release(users, 20.0, np.random.default_rng(1))
    assert found.facts["length"] == 1
    assert found.facts["reports_per_user"] == 3


def test_by_default_trajectories_are_cut_at_the_number_of_cells_and_stays_are_dropped() -> None:
    assert [LdpTrace().longest(side) for side in (1, 3, 300)] == [1, 9, 65_536]
    there_and_back = cells_by_user(np.zeros(50, int), np.tile([0, 8], 25), (3, 3))
    found = LdpTrace("all").release(there_and_back, 20.0, np.random.default_rng(1))
    assert found.facts["length"] == 9
    still = cells_by_user(np.repeat(np.arange(500), 6), np.repeat(np.arange(500) % 9, 6), (3, 3))
    for stays, longest in ((False, 1), (True, 6)):
        found = LdpTrace(stays=stays).release(still, 20.0, np.random.default_rng(1))
        assert found.facts["length"] == longest
    assert not (MoveDomain(3, stays=False).targets == np.arange(9)[:, None]).any()
    assert MoveDomain(3, stays=False).none == len([a for a, b in naive.moves(3) if a != b])
    kept = without_stays(naive.trails([0, 0, 1, 1, 0], [1], [1, 1], [2, 1]))
    assert [kept.of(k).tolist() for k in range(4)] == [[0, 1, 0], [1], [1], [2, 1]]


def test_an_epsilon_too_small_for_all_slots_is_refused_where_the_map_is_known() -> None:
    users = walkers(5, 3)
    with pytest.raises(InputError, match="epsilon must be more than"):
        LdpTrace("all").release(users, 1e-5, np.random.default_rng(1))


def test_the_law_is_projected_where_noise_is_little_and_uniform_where_it_is_all() -> None:
    rng, truth = np.random.default_rng(1), np.repeat([0.1, 0.0], [10, 90])
    little = truth + rng.normal(0, 0.01, 100)
    assert np.array_equal(heard_law(little, 1e-4), on_simplex(little))
    # Of 200 laws of noise alone nearly all say nothing; each projection holds a few peaks.
    noise = rng.normal(0, 10, (200, 100))
    silent = [bool(np.ptp(heard_law(shares, 100)) == 0) for shares in noise]
    assert np.mean(silent) > 0.9
    assert max(np.count_nonzero(on_simplex(shares)) for shares in noise) < 10
    # Between: negatives are cut, and the law lies between uniform and what is left.
    between = truth * 5 + rng.normal(0, 0.05, 100)
    found, above = heard_law(between, 0.0025), np.maximum(between, 0)
    heard = (found - 0.01) / (above / above.sum() - 0.01)
    assert np.allclose(heard, heard[0])
    assert 0.5 < heard[0] < 1
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "3"])
def test_numbers_that_are_none_are_refused_by_name(value: object) -> None:
    for method, name in ((LdpTrace("all").report_part, "longest"), (LdpTrace().longest, "cells")):
        with pytest.raises(InputError, match=f"^{name} must be a whole number from 1 on, got"):
            method(value)  # type: ignore[arg-type]


def test_an_epsilon_too_small_for_one_of_many_slots_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon must be more than"):
        LdpTrace("all", most_points=100).claim(5e-5)
    assert LdpTrace("one", most_points=100).claim(5e-5).epsilon == 5e-5


def test_without_a_report_of_a_move_there_is_none_in_the_model() -> None:
    slot = np.zeros(2, np.int64)
    trails = naive.trails([0, 1, 3], [2])
    model = collect(trails, MoveDomain(2), 3, slot, 15.0, np.random.default_rng(1))
    assert not model.moves.any()
