import importlib
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance

from ldpspatial.errors import InputError, SolverError
from ldpspatial.metrics import sinkhorn_divergence, wasserstein
from tests.support import naive_metrics

FloatArray: TypeAlias = npt.NDArray[np.float64]

# By name: attribute access to a module that shares its name with a function finds the function.
module = importlib.import_module("ldpspatial.metrics.sinkhorn")
maps = importlib.import_module("ldpspatial.metrics._maps")


def random_map(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    masses = rng.random(shape) * (rng.random(shape) < 0.7)
    masses[0, 0] += 0.1
    density: FloatArray = masses / masses.sum()
    return density


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("regularisation", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("sides", [(1.0, 1.0), (2.0, 0.5)])
def test_equals_the_primal_value_of_plain_scaling(
    order: int, regularisation: float, sides: tuple[float, float]
) -> None:
    rng = np.random.default_rng([order, int(regularisation * 2)])
    p, q = random_map(rng, (3, 4)), random_map(rng, (3, 4))
    expected = naive_metrics.sinkhorn_divergence(p, q, regularisation, order, sides)
    got = sinkhorn_divergence(p, q, regularisation, order, sides)
    assert got == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_tends_to_the_exact_distance_as_regularisation_falls(order: int) -> None:
    p, q = random_map(np.random.default_rng(1), (4, 4)), np.full((4, 4), 1 / 16)
    exact = wasserstein(p, q, order) ** order
    weights = (10.0, 1.0, 0.2, 0.05)
    errors = [abs(sinkhorn_divergence(p, q, weight, order) ** order - exact) for weight in weights]
    assert errors == sorted(errors, reverse=True)
    # The KL term of a coupling is its mutual information, at most the entropy of 16 equal cells.
    assert all(error <= w * math.log(16) for error, w in zip(errors, weights, strict=True))
    assert errors[-1] < 0.06 * exact


def test_grows_into_the_distance_of_means_for_order_2() -> None:
    # As regularisation grows, S of order 2 tends to |mean(p) - mean(q)|^2.
    rng = np.random.default_rng(2)
    p, q = random_map(rng, (4, 5)), random_map(rng, (4, 5))
    rows, columns = np.mgrid[:4, :5]
    means = math.hypot(((p - q) * rows).sum(), ((p - q) * columns).sum())
    assert sinkhorn_divergence(p, q, 1e6) == pytest.approx(means, rel=1e-4)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("regularisation", [0.01, 5.0, 1e4])
def test_is_exactly_0_between_a_map_and_itself(order: int, regularisation: float) -> None:
    p = random_map(np.random.default_rng(3), (6, 6))
    assert sinkhorn_divergence(p, p.copy(), regularisation, order) == 0.0


@pytest.mark.parametrize("order", [1, 2])
def test_without_debiasing_a_map_would_stand_apart_from_itself(order: int) -> None:
    p = random_map(np.random.default_rng(4), (4, 4))
    assert naive_metrics.regularised_cost(p, p, 5.0, order) > 0.5


def test_a_shifted_map_is_apart_by_the_shift_whatever_the_regularisation() -> None:
    p, q = np.zeros((7, 8)), np.zeros((7, 8))
    p[:4, :4] = q[3:, 4:] = random_map(np.random.default_rng(5), (4, 4))
    for regularisation in (1.0, 10.0, 1000.0):
        assert sinkhorn_divergence(p, q, regularisation) == pytest.approx(5.0, rel=1e-6)


def test_point_masses_are_apart_by_their_distance() -> None:
    p, q = [[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]
    for order in (1, 2):
        apart = sinkhorn_divergence(p, q, 0.7, order, cell=(3.0, 2.0))
        assert apart == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_scales_with_the_cell_when_the_regularisation_does(order: int) -> None:
    rng = np.random.default_rng(6)
    p, q = random_map(rng, (4, 4)), random_map(rng, (4, 4))
    in_cells = sinkhorn_divergence(p, q, 0.8, order)
    for cell in (1e-3, 0.25, 500.0):
        in_units = sinkhorn_divergence(p, q, 0.8 * cell**order, order, cell)
        assert in_units == pytest.approx(cell * in_cells, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_a_shuffled_map_is_not_the_same_map(order: int) -> None:
    rng = np.random.default_rng(7)
    p = random_map(rng, (5, 5))
    shuffled = rng.permutation(p.ravel()).reshape(p.shape)
    assert wasserstein_distance(p.ravel(), shuffled.ravel()) == 0.0
    assert sinkhorn_divergence(p, shuffled, 1.0, order) > 0.05


small_maps = arrays(np.int64, (3, 3), elements=st.integers(0, 9)).filter(lambda x: x.sum() > 0)


@settings(max_examples=40)
@given(small_maps, small_maps, st.sampled_from([1, 2]))
def test_is_symmetric_and_never_negative(p: FloatArray, q: FloatArray, order: int) -> None:
    p, q = p / p.sum(), q / q.sum()
    apart = sinkhorn_divergence(p, q, 2.0, order)
    assert apart >= 0.0
    # Near 0 the root magnifies the tolerance of the marginals.
    back = sinkhorn_divergence(q, p, 2.0, order)
    assert back**order == pytest.approx(apart**order, rel=1e-5, abs=1e-9)


def test_tiny_masses_do_no_harm() -> None:
    p, q = np.array([[1.0, 1e-18, 1e-300]]), np.array([[1e-18, 0.0, 1.0]])
    assert sinkhorn_divergence(p, q, 1.0) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_no_convergence_is_an_error_without_a_warning(
    monkeypatch: pytest.MonkeyPatch, order: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(8)
    p, q = random_map(rng, (5, 5)), random_map(rng, (5, 5))
    monkeypatch.setattr(module, "_ITERATIONS", 1)
    with pytest.raises(SolverError, match=r"did not converge: .* after 1 iterations; raise the"):
        sinkhorn_divergence(p, q, 0.1, order)
    monkeypatch.setattr(module, "_ITERATIONS", 500)
    with pytest.raises(SolverError, match="Sinkhorn did not converge"):
        sinkhorn_divergence(p, q, 1e-6, order)
    assert capfd.readouterr() == ("", "")


def test_refuses_maps_that_do_not_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MAX_PAIRS", 8)
    with pytest.raises(InputError, match=r"at most 8 pairs of cells .* got 3 x 3 = 9"):
        sinkhorn_divergence([[1, 1, 1]], [[3, 0, 0]], 1.0)


def test_a_regularisation_that_vanishes_beside_a_cell_is_refused() -> None:
    with pytest.raises(InputError, match="regularisation must be positive and finite divided by"):
        sinkhorn_divergence([[1, 1]], [[1, 1]], 1e-323, cell=1e6)


def test_a_map_of_which_the_own_cost_has_not_converged_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However well the two maps' costs have."""
    p = np.random.default_rng(5).random((4, 4))
    monkeypatch.setattr(module, "_cross_cost", lambda *_: 1.0)
    assert sinkhorn_divergence(p, p[::-1], 0.1) > 0
    monkeypatch.setattr(module, "_ITERATIONS", 2)
    with pytest.raises(SolverError, match=r"did not converge: .* after 2 iterations"):
        sinkhorn_divergence(p, p[::-1], 0.1)


def test_rounding_below_0_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    p = np.random.default_rng(6).random((3, 3))
    own = []
    real = module._self_cost
    monkeypatch.setattr(module, "_self_cost", lambda *law: own.append(real(*law)) or own[-1])
    monkeypatch.setattr(module, "_cross_cost", lambda *_: sum(own) / 2 - 1e-15)
    assert sinkhorn_divergence(p, p[::-1], 1.0) == 0.0
