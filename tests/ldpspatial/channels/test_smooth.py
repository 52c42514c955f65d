"""Kernels against their dense twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.smooth import ALL, WIDTHS, SmoothedChannel
from tests.support import naive_sieve


@given(st.integers(1, 40), st.sampled_from(WIDTHS))
@settings(max_examples=60, deadline=None)
def test_kernels_are_symmetric_and_doubly_stochastic(side: int, width: float) -> None:
    shape = (side, min(side, 3))
    smoothed = SmoothedChannel(MatrixChannel(np.eye(side * shape[1]), shape, 1.0), width)
    units = np.eye(side * shape[1]).reshape(-1, *shape)
    blur = np.array([smoothed.smooth(unit).ravel() for unit in units])
    np.testing.assert_allclose(blur, blur.T, atol=1e-15)
    np.testing.assert_allclose(blur.sum(axis=0), 1, rtol=1e-12)
    assert blur.min() >= 0
    np.testing.assert_allclose(blur, naive_sieve.blur(shape, width), atol=1e-13)
    if width == 0:
        np.testing.assert_array_equal(blur, np.eye(len(blur)))


@given(
    st.sampled_from([("dam", 2.0, 9, 3), ("huem", 5.0, 7, None), ("dam", 1.0, 24, 12)]),
    st.sampled_from((*WIDTHS, ALL)),
    st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_the_adjoint_of_a_smoothed_channel_is_its_adjoint(
    how: tuple[str, float, int, int | None], width: float, seed: int
) -> None:
    channel = SmoothedChannel(StampChannel(response_table(*how)), width)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(channel.start.size, 0.1)).reshape(channel.input_shape)
    ratio = rng.exponential(size=channel.support.shape) * channel.support
    forth = (channel.forward(weights) * ratio).sum()
    assert forth == pytest.approx((weights * channel.adjoint(ratio)).sum(), rel=1e-11)
    assert channel.forward(weights).sum() == pytest.approx(1, abs=1e-12)


def test_kernels_of_all_widths_begin_with_the_uniform_map_and_sum_up_their_maps() -> None:
    shape = (12, 9)  # a quarter of the shorter side: widths to 2.25
    channel = SmoothedChannel(MatrixChannel(np.eye(108), shape, 1.0), ALL)
    widths = [0.0, 0.6, 1.0, 1.6]
    assert channel.input_shape == (48, 9)
    np.testing.assert_allclose(channel.smooth(channel.start), 1 / 108, rtol=1e-12)
    blurs, start = naive_sieve.mixture(shape, widths)
    np.testing.assert_allclose(channel.start.ravel(), start, rtol=1e-12)
    weights = np.random.default_rng(1).dirichlet(np.full(432, 0.1))
    smooth = channel.smooth(weights.reshape(48, 9)).ravel()
    np.testing.assert_allclose(smooth, blurs @ weights, atol=1e-13)
