"""The posterior of a field: derivatives, stacks of channels, blocks, the way to the mode."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from client_sdk import response_table
from ldpspatial import InputError, StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.disk_sums import DiskSums
from ldpspatial.channels.stacks import Dense, Stamped, block_side, stack
from ldpspatial.estimation.field import scales
from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.optimise import conjugate_gradients, mode
from ldpspatial.estimation.field.prior import HYPERS, FieldPrior, link, unlink
from ldpspatial.estimation.field.scales import ByCellAndWave, by_cell_and_wave
from ldpspatial.estimation.field.way import Way

Array = NDArray[np.float64]
D = 7
STEP = 1e-5
HYPERS_OF_CENTRE = np.array([0.3, -0.2, 0.5, -0.4, 0.7])


def channel_of(cells: int = D, radius: int = 2, epsilon: float = 2.0) -> StampChannel:
    return StampChannel(response_table("dam", epsilon, cells, radius=radius))


def a_model(is_centred: bool = False, windows: int = 1, is_known: bool = False) -> FieldModel:
    rng = np.random.default_rng(3)
    operators = stack(channel_of())
    counts = rng.poisson(20, (windows, *operators.support.shape)) * operators.support
    prior = FieldPrior(D, windows)
    if is_centred:
        prior = prior.centred(rng.uniform(size=prior.shape), HYPERS_OF_CENTRE)
    where = rng.uniform(size=(D, D)) < 0.8 if is_known else None
    log_public = rng.standard_normal((D, D)) if is_known else None
    return FieldModel(operators, counts.astype(float), prior, log_public, where)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("is_centred", [False, True])
def test_derivatives_are_those_of_finite_differences(
    is_centred: bool, windows: int, is_known: bool
) -> None:
    model = a_model(is_centred, windows, is_known)
    rng = np.random.default_rng(1)
    points, steps = rng.standard_normal((2, 3, model.prior.size))
    state = model.at(points)
    ahead, behind = (model.at(points + sign * STEP * steps) for sign in (1, -1))
    slope = (ahead.energy - behind.energy) / (2 * STEP)
    np.testing.assert_allclose((model.gradient(points, state) * steps).sum(1), slope, rtol=1e-6)
    moved = (ahead.reports - behind.reports) / (2 * STEP)
    np.testing.assert_allclose(model.jacobian(state, steps), moved, atol=1e-8)


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("is_centred", [False, True])
def test_the_transpose_is_one_and_the_metric_is_positive(is_centred: bool, windows: int) -> None:
    model = a_model(is_centred, windows, is_known=True)
    rng = np.random.default_rng(2)
    points, steps = rng.standard_normal((2, 3, model.prior.size))
    state = model.at(points)
    pushed = model.jacobian(state, steps)
    ratios = rng.standard_normal(pushed.shape)
    left = (pushed * ratios).sum((1, 2, 3))
    np.testing.assert_allclose((model.transposed(state, ratios) * steps).sum(1), left)
    assert ((model.metric(state, steps) * steps).sum(1) >= (steps[:, :-HYPERS] ** 2).sum(1)).all()


def test_both_coordinates_say_the_same_of_a_field() -> None:
    """Where they agree, the energies differ by what does not depend on the waves."""
    plain, centred = a_model(windows=2), a_model(is_centred=True, windows=2)
    rng = np.random.default_rng(4)
    points = np.append(rng.standard_normal(2 * D * D), HYPERS_OF_CENTRE)[None]
    first, second = plain.at(points), centred.at(points)
    np.testing.assert_allclose(first.density, second.density)
    np.testing.assert_allclose(first.energy, second.energy)


def test_the_volume_of_centred_coordinates_is_in_their_energy() -> None:
    """p(y, h) = p(xi(y, h), h) |d xi / d y|: energies at the same field differ by its logarithm."""
    plain, centred = a_model(windows=2), a_model(is_centred=True, windows=2)
    rng = np.random.default_rng(5)
    hypers = np.array([-0.4, 0.6, 0.1, 0.3, -0.2])
    waves = rng.standard_normal(2 * D * D)
    spectra = [model.prior.spectrum(hypers[None]).amplitude.ravel() for model in (plain, centred)]
    same = waves * spectra[0] / spectra[1]
    first = plain.at(np.append(waves, hypers)[None])
    second = centred.at(np.append(same, hypers)[None])
    np.testing.assert_allclose(first.density, second.density)
    volume = np.log(spectra[1] / spectra[0]).sum()  # of xi = y B / A
    np.testing.assert_allclose(second.energy, first.energy - volume)


def test_a_single_window_of_several_that_never_change_is_one_window() -> None:
    """All power is in what is common: three windows of equal fields have one density."""
    model = a_model(windows=3)
    points = np.zeros((1, model.prior.size))
    points[0, : D * D] = np.random.default_rng(11).standard_normal(D * D)
    points[0, -2] = 6.0  # log t
    density = model.at(points).density[0]
    np.testing.assert_allclose(density, density[[1, 2, 0]], rtol=1e-6)
    alone = a_model()
    found = alone.at(np.delete(points, np.s_[D * D : 3 * D * D], 1)).density[0, 0]
    np.testing.assert_allclose(density[0], found, rtol=1e-3)


def test_nobody_is_where_nobody_can_be() -> None:
    model = a_model(is_known=True)
    points = np.random.default_rng(12).standard_normal((2, model.prior.size))
    density = model.at(points).density
    is_outside = model._outside < 0
    assert density[..., is_outside].max() == 0
    assert density[..., ~is_outside].min() > 0


def test_single_precision_has_the_same_metric() -> None:
    model = a_model(windows=2, is_known=True)
    points, steps = np.random.default_rng(6).standard_normal((2, 4, model.prior.size))
    long = model.metric(model.at(points), steps)
    single = model.single()
    found = single.metric(single.at(points.astype(np.float32)), steps.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, long, rtol=1e-3, atol=1e-3 * np.abs(long).max())


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("is_centred", [False, True])
def test_the_way_is_the_gradient(is_centred: bool, windows: int, is_known: bool) -> None:
    """In few passes and half precision, as in the formulas one by one."""
    model = a_model(is_centred, windows, is_known)
    points = np.random.default_rng(13).standard_normal((5, model.prior.size))
    exact = model.gradient(points, model.at(points))
    found = Way(model).gradient(points)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize(("cells", "radius", "block"), [(50, 36, 5), (12, 2, 1)])
def test_the_way_behind_a_disk_is_the_gradient(cells: int, radius: int, block: int) -> None:
    """On blocks by transforms, as sums of such a stamp take more additions."""
    channel = channel_of(cells, radius)
    operators = Stamped(channel, block)
    rng = np.random.default_rng(14)
    came = rng.poisson(5.0, (2, *channel.support.shape)) * channel.support
    counts = np.stack([operators.counted(each) for each in came])
    model = FieldModel(operators, counts, FieldPrior(operators.cells, 2))
    points = rng.standard_normal((3, model.prior.size))
    exact = model.gradient(points, model.at(points))
    found = Way(model).gradient(points)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("radius", [0, 1, 4, 9])
def test_sums_over_a_stamp_are_those_of_a_convolution(radius: int) -> None:
    """Of any stamp that is its own mirror image, also where it is wider than the map."""
    rng = np.random.default_rng(16)
    quarter = rng.uniform(size=(radius + 1, radius + 1)) * (rng.random(radius + 1) < 0.7)
    stamp = np.pad(quarter, ((radius, 0), (radius, 0)), "reflect")
    sums = DiskSums.of(stamp)
    values = rng.uniform(size=(2, 7, 7))
    spread = sums.spread(values)
    expected = [signal.convolve2d(each, stamp) for each in values]
    np.testing.assert_allclose(spread, expected, atol=1e-13)
    inner = [signal.convolve2d(each, stamp, "valid") for each in spread]
    np.testing.assert_allclose(sums.gathered(spread), inner, atol=1e-12)
    short = sums.spread(values.astype(np.float32))
    assert short.dtype == np.float32
    np.testing.assert_allclose(short, expected, rtol=1e-5, atol=1e-5)


def test_all_forms_of_a_channel_agree() -> None:
    channel = channel_of()
    rng = np.random.default_rng(7)
    densities = rng.dirichlet(np.ones(D * D), 3).reshape(3, D, D)
    ratios = rng.uniform(size=(3, *channel.support.shape))
    for form in (Dense(channel), Stamped(channel)):
        expected = [channel.forward(each) for each in densities]
        np.testing.assert_allclose(form.forward(densities), expected, atol=1e-15)
        back = [channel.adjoint(np.where(channel.support, each, 0)) for each in ratios]
        np.testing.assert_allclose(form.adjoint(ratios), back, atol=1e-14)


@pytest.mark.parametrize(("radius", "block"), [(4, 2), (5, 2), (7, 2), (9, 3), (10, 3), (6, 6)])
def test_blocks_are_exact_for_a_density_that_is_constant_on_them(radius: int, block: int) -> None:
    channel = channel_of(12, radius)
    blocks = Stamped(channel, block)
    rng = np.random.default_rng(8)
    side = 12 // block
    density = rng.dirichlet(np.ones(side * side), 2).reshape(2, side, side)
    reports = np.stack([channel.forward(each) for each in blocks.spread(density)])
    counted = np.stack([blocks.counted(each) for each in reports])
    np.testing.assert_allclose(blocks.forward(density), counted, atol=1e-15)
    ratios = rng.uniform(size=(2, *blocks.support.shape)) * blocks.support
    np.testing.assert_allclose(
        (blocks.forward(density) * ratios).sum((1, 2)),
        (blocks.adjoint(ratios) * density).sum((1, 2)),
    )
    np.testing.assert_allclose(blocks.gathered(blocks.spread(density)[0]), density[0])


@pytest.mark.parametrize(
    ("cells", "radius", "side"),
    [
        (32, 30, 1), (64, 12, 2), (64, 11, 1), (128, 15, 2), (256, 50, 8), (256, 47, 4),
        (127, 90, 4), (128, 7, 1), (256, 14, 2), (256, 11, 2), (256, 5, 1), (257, 38, 6),
    ],
)  # fmt: skip
def test_blocks_are_narrow_beside_the_disk(cells: int, radius: int, side: int) -> None:
    assert block_side(cells, radius) == side


@pytest.mark.parametrize(("cells", "radius", "block"), [(13, 5, 2), (13, 4, 4), (11, 7, 3)])
def test_blocks_may_reach_beyond_the_square(cells: int, radius: int, block: int) -> None:
    """Sums are alike, transposes agree, and a density inside is seen as its cells are."""
    channel = channel_of(cells, radius)
    blocks = Stamped(channel, block)
    side = blocks.cells
    assert block * (side - 1) < cells < block * side
    rng = np.random.default_rng(10)
    density = rng.dirichlet(np.ones(side * side), 2).reshape(2, side, side)
    forward = blocks.forward(density)
    assert np.ptp(forward.sum((1, 2))) < 1e-12  # else likelihoods of densities would be askew
    ratios = rng.uniform(size=(2, *blocks.support.shape)) * blocks.support
    np.testing.assert_allclose(
        (forward * ratios).sum((1, 2)), (blocks.adjoint(ratios) * density).sum((1, 2))
    )
    spread = blocks.spread(density)
    assert spread.shape == (2, cells, cells)
    np.testing.assert_allclose(blocks.gathered(spread), density)
    density[:, -1] = density[:, :, -1] = 0.0
    reports = np.stack([blocks.counted(channel.forward(each)) for each in blocks.spread(density)])
    inside = blocks.counted(channel.support.astype(float)) > 0
    assert (~inside & blocks.support).any()
    np.testing.assert_allclose(blocks.forward(density)[:, inside], reports[:, inside], atol=1e-15)


def test_a_channel_that_is_no_disk_is_taken_by_its_matrix() -> None:
    rng = np.random.default_rng(9)
    law = rng.dirichlet(np.ones(12), 9).T
    operators = stack(MatrixChannel(law, (3, 3), 1.0))
    density = rng.dirichlet(np.ones(9)).reshape(1, 3, 3)
    np.testing.assert_allclose(operators.forward(density)[0].ravel(), law @ density.ravel())


def test_the_link_is_undone_from_far_away() -> None:
    field = np.array([-30.0, -5.0, 5.0, 30.0])
    np.testing.assert_allclose(unlink(link(field)[0]), field, atol=1e-6)


def test_conjugate_gradients_solve_a_stack_of_systems() -> None:
    rng = np.random.default_rng(10)
    roots = rng.standard_normal((2, 6, 6))
    systems = roots @ roots.transpose(0, 2, 1) + np.eye(6)
    right = rng.standard_normal((2, 6))
    found = conjugate_gradients(
        lambda steps: (systems @ steps[:, :, None])[:, :, 0], right, lambda each: each, 1e-12, 50
    )
    np.testing.assert_allclose(found, np.linalg.solve(systems, right[:, :, None])[:, :, 0])


def test_where_cells_are_told_unlike_scales_by_cell_take_fewer_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten million reports of a peak and a plain: less than a third of those by wave, to one end."""
    operators = stack(channel_of(16, 2, 6.0))
    density = np.full((16, 16), 1e-5)
    density[3:5, 4:6] = 1.0
    density /= density.sum()
    counts = 1e7 * operators.forward(density[None])
    model = FieldModel(operators, counts, FieldPrior(16, 1))
    state = model.at(model.point_of(density[None])[None])
    assert ByCellAndWave(model, state).spread > scales.UNLIKE
    right = np.random.default_rng(11).standard_normal((1, model.prior.size))
    steps = []

    def metric(values: Array) -> Array:
        steps[-1] += 1
        return model.metric(state, values)

    ends = []
    for unlike in (scales.UNLIKE, np.inf):
        monkeypatch.setattr(scales, "UNLIKE", unlike)
        steps.append(0)
        nearly = by_cell_and_wave(model, state)
        # Positive definite, or the search would go astray.
        assert (right * nearly(right)).sum() > 0
        ends.append(conjugate_gradients(metric, right, nearly, 1e-6, 2000))
    assert steps[0] < steps[1] / 3
    np.testing.assert_allclose(ends[0], ends[1], atol=0.02 * np.abs(ends[1]).max())


def test_no_direction_leads_down_from_the_mode() -> None:
    """Not by two nats: the search ends where a step, solved roughly, gains under half of one."""
    model = a_model()
    point = mode(model, np.zeros(model.prior.size))
    state = model.at(point[None])
    free = np.ones(point.size)
    free[-HYPERS:] = 0
    gradient = model.gradient(point[None], state) * free

    def metric(steps: Array) -> Array:
        return np.asarray(model.metric(state, steps * free) * free + steps * (1 - free))

    newton = conjugate_gradients(metric, -gradient, by_cell_and_wave(model, state), 1e-8, 500)
    others = np.random.default_rng(6).standard_normal((200, point.size)) * free
    energy = float(state.energy[0])
    for step in (*newton, *others):
        for length in (1.0, 0.3, 0.1, 0.01):
            assert float(model.at((point + length * step)[None]).energy[0]) > energy - 2
    start = np.zeros((1, model.prior.size))
    assert energy < float(model.at(start).energy[0]) - 50


def test_channels_that_are_not_square_are_refused() -> None:
    law = np.full((4, 6), 0.25)
    with pytest.raises(InputError, match="channel must take densities of d x d cells"):
        stack(MatrixChannel(law, (2, 3), 1.0))
