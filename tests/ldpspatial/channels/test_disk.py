"""The channel: direct, FFT and dense matrix are one operator, and it is the table's."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from client_sdk import ResponseTable, response_table
from client_sdk.mechanisms import PAPER as MECHANISMS
from ldpspatial import StampChannel
from ldpspatial.channels.disk import DIRECT_DISK_CELLS
from ldpspatial.channels.stacks import Dense, Each, Stamped, of_one
from ldpspatial.errors import InputError
from tests.support import naive_channel

METHODS = ["direct", "fft"]
SETTINGS = [  # epsilon, cells, radius
    *[(epsilon, cells, None) for epsilon in (0.7, 3.5) for cells in (1, 2, 5, 15)],
    (9.0, 15, None),  # b = 0
    (3.5, 5, 0),
    (0.7, 2, 4),  # b > d
    (5.0, 5, 9),
    (0.1, 5, None),
    (20.0, 5, 3),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("epsilon", "cells", "radius"), SETTINGS)
def test_direct_fft_and_matrix_equal_the_tables_probabilities(
    mechanism: str, epsilon: float, cells: int, radius: int | None
) -> None:
    table = response_table(mechanism, epsilon, cells, radius)
    dense = naive_channel.matrix(table)
    assert dense.sum(axis=0) == pytest.approx(1, abs=1e-12)
    rng = np.random.default_rng(1)
    density = rng.dirichlet(np.full(cells**2, 0.3)).reshape(cells, cells)
    by_index = rng.gamma(0.3, size=table.output_size)
    forward = naive_channel.spread(table, dense @ density.ravel())
    adjoint = (dense.T @ by_index).reshape(cells, cells)
    for method in METHODS:
        channel = StampChannel(table, method)
        assert channel.method == method
        assert channel.input_shape == (cells, cells)
        np.testing.assert_allclose(channel.matrix(), dense, rtol=1e-12)
        np.testing.assert_allclose(channel.forward(density), forward, rtol=1e-9, atol=1e-15)
        ratio = naive_channel.spread(table, by_index)
        # What lies outside the output domain does not count, NaN included.
        ratio[~channel.support] = np.nan
        np.testing.assert_allclose(channel.adjoint(ratio), adjoint, rtol=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 2), (2, 4), (5, 1), (5, 7), (15, 3)])
def test_support_is_the_output_domain(mechanism: str, cells: int, radius: int) -> None:
    table = response_table(mechanism, 2.0, cells, radius)
    channel = StampChannel(table)
    assert channel.support.shape == channel.output_shape == (cells + 2 * radius,) * 2
    in_order = [(int(r) - radius, int(c) - radius) for r, c in np.argwhere(channel.support)]
    assert in_order == table.output_cells()
    assert channel.epsilon == 2.0


@st.composite
def channels(draw: st.DrawFn) -> StampChannel:
    cells = draw(st.integers(1, 9))
    table = response_table(
        draw(st.sampled_from(list(MECHANISMS))),
        draw(st.floats(0.05, 12)),
        cells,
        draw(st.one_of(st.none(), st.integers(0, 2 * cells))),
    )
    return StampChannel(table, draw(st.sampled_from(METHODS)))


@given(channels(), st.integers(0, 10**6))
@settings(max_examples=100)
def test_forward_and_adjoint_are_adjoint(channel: StampChannel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    density = rng.normal(size=channel.input_shape)
    ratio = rng.normal(size=channel.output_shape)
    there = float((channel.forward(density) * ratio).sum())
    back = float((density * channel.adjoint(ratio)).sum())
    scale = np.linalg.norm(density) * np.linalg.norm(ratio)
    assert there == pytest.approx(back, abs=1e-12 * scale)


@given(channels(), st.integers(0, 10**6), st.floats(0.01, 5))
@settings(max_examples=100)
def test_every_density_becomes_a_distribution_of_reports(
    channel: StampChannel, seed: int, lumpiness: float
) -> None:
    size = channel.table.cells**2
    weights = np.random.default_rng(seed).gamma(lumpiness, size=size) + 1e-12
    law = channel.forward((weights / weights.sum()).reshape(channel.input_shape))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert (law[channel.support] > 0).all()
    assert not law[~channel.support].any()
    assert np.allclose(channel.adjoint(channel.support.astype(float)), 1, atol=1e-12)


def test_at_radius_0_the_channel_is_k_ary_randomised_response() -> None:
    channel = StampChannel(response_table("dam", 2.0, 3, 0))
    p = np.exp(2) / (np.exp(2) + 8)
    expected = np.full((9, 9), (1 - p) / 8)
    np.fill_diagonal(expected, p)
    np.testing.assert_allclose(channel.matrix(), expected, rtol=1e-9)


def test_a_table_made_by_hand_is_taken_as_it_is() -> None:
    table = ResponseTable("handmade", 1.0, 2, 1, ((5,), (2, 3)))
    dense = naive_channel.matrix(table)
    assert sorted(set((dense * table.total_weight).round(9).ravel())) == [1, 2, 3, 5]
    for method in METHODS:
        np.testing.assert_allclose(StampChannel(table, method).matrix(), dense, rtol=1e-12)
        density = np.array([[0.1, 0.2], [0.3, 0.4]])
        forward = naive_channel.spread(table, dense @ density.ravel())
        found = StampChannel(table, method).forward(density)
        np.testing.assert_allclose(found, forward, rtol=1e-12)


def test_arrays_of_any_memory_order_and_whole_numbers_are_welcome() -> None:
    density = np.arange(9).reshape(3, 3)
    for method in METHODS:
        channel = StampChannel(response_table("dam", 2.0, 3, 1), method)
        expected = channel.forward(density.astype(float))
        np.testing.assert_array_equal(channel.forward(np.asfortranarray(density)), expected)
        ratio = np.arange(25.0).reshape(5, 5)
        back = channel.adjoint(np.asfortranarray(ratio))
        np.testing.assert_array_equal(back, channel.adjoint(ratio))


@pytest.mark.parametrize(("epsilon", "method"), [(3.5, "direct"), (0.7, "fft")])
def test_auto_takes_the_method_by_the_size_of_the_disk(epsilon: float, method: str) -> None:
    table = response_table("dam", epsilon, 15)
    assert (len(table.weights) <= DIRECT_DISK_CELLS) == (method == "direct")
    assert StampChannel(table).method == method


def test_256_cells_take_megabytes_where_the_matrix_would_take_63_gigabytes() -> None:
    table = response_table("dam", 3.5, 256)
    channel = StampChannel(table)
    density = np.full((256, 256), 256.0**-2)
    counts = np.ones(channel.output_shape)
    tracemalloc.start()
    law = channel.forward(density)
    back = channel.adjoint(counts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6
    assert law.sum() == pytest.approx(1)
    assert back.shape == (256, 256)
    with pytest.raises(InputError, match="cells must be smaller for a dense matrix, got 256"):
        channel.matrix()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (25,), (1, 1), (7, 7), (5, 5, 1)])
def test_arrays_of_another_shape_are_refused(method: str, shape: tuple[int, ...]) -> None:
    channel = StampChannel(response_table("dam", 3.5, 5), method)  # 7 x 7 output cells
    if shape != (5, 5):
        with pytest.raises(InputError, match=r"density must be .* of shape \(5, 5\), got"):
            channel.forward(np.ones(shape))
    if shape != (7, 7):
        with pytest.raises(InputError, match=r"ratio must be .* of shape \(7, 7\), got"):
            channel.adjoint(np.ones(shape))


@pytest.mark.parametrize(("name", "epsilon", "cells"), [("dam", 3.5, 5), ("dam", 0.5, 40)])
def test_the_quick_operators_are_those_of_the_channel(
    name: str, epsilon: float, cells: int
) -> None:
    """Of one density at a time, be it by sums or by transforms, with zeros where reports end."""
    channel = StampChannel(response_table(name, epsilon=epsilon, cells=cells))
    forward, adjoint = of_one(channel)
    rng = np.random.default_rng(1)
    density = rng.random(channel.input_shape)
    reports = forward(density)
    assert reports == pytest.approx(channel.forward(density), rel=1e-11, abs=1e-15)
    assert (reports[~channel.support] == 0).all()
    ratio = rng.random(channel.support.shape)
    assert adjoint(ratio) == pytest.approx(channel.adjoint(ratio), rel=1e-11)


@pytest.mark.parametrize(("epsilon", "cells"), [(3.5, 5), (0.5, 40)])
@pytest.mark.parametrize("kind", [Dense, Each, Stamped])
def test_what_curves_a_likelihood_is_pushed_weighted_and_pulled(
    kind: type[Dense | Each | Stamped], epsilon: float, cells: int
) -> None:
    channel = StampChannel(response_table("dam", epsilon=epsilon, cells=cells))
    operators = kind(channel)
    rng = np.random.default_rng(2)
    values = rng.standard_normal((3, cells, cells))
    weights = rng.random((3, *channel.support.shape)) * channel.support
    found = operators.curved(values, weights.reshape(3, *operators.counted(channel.support).shape))
    for each, weight, value in zip(found, weights, values, strict=True):
        expected = (channel.matrix() @ value.ravel()) * weight[channel.support]
        assert each.ravel() == pytest.approx(channel.matrix().T @ expected, rel=1e-9, abs=1e-12)


def test_what_a_subclass_does_is_not_passed_by() -> None:
    class Doubled(StampChannel):
        def forward(self, density: ArrayLike) -> NDArray[np.float64]:
            return 2 * StampChannel.forward(self, density)

    channel = Doubled(response_table("dam", epsilon=3.5, cells=5))
    forward, _ = of_one(channel)
    assert forward(np.full((5, 5), 0.04)).sum() == pytest.approx(2.0)
