"""The compiled draws: the same reports as the scalar sampler, for the same entropy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Grid, ParameterError, PositionError, ResponseTable, kernels, response_table
from client_sdk.mechanisms import MECHANISMS
from client_sdk.sampling import Sampler
from client_sdk.testing import FixedEntropy, StreamEntropy
from tests.support import naive_aes
from tests.support import naive_sampling as naive

TABLES = [
    *(
        response_table(mechanism, epsilon, cells, radius)
        for mechanism in MECHANISMS
        for epsilon, cells, radius in (
            (1.4, 1, None), (2, 1, 2), (3.5, 3, None), (0.5, 4, None), (3.5, 15, None), (1, 64, 9),
        )
    ),
    response_table("disk", 3.5, 15, squared_radius=13),
    ResponseTable("ring", 3.0, 3, 4, ((5,), (9, 4), (7, 9))),
    ResponseTable("flat", 1.0, 2, 8, ((8,), (8, 8))),
    ResponseTable("base no power of two", 1.0, 2, 5, ((7,), (6, 5))),
]  # fmt: skip

GRIDS = [
    Grid.from_center(52.52, 13.405, 20_000, 15),
    Grid.from_center(-17.8, 179.99, 50_000, 64),  # across the antimeridian
    Grid.from_bounds(-10, -180, 20, 7),
    Grid.from_bounds(-85, 100, 170, 4096),
    Grid.from_bounds(41.64, -87.90, 0.36, 20),
    Grid("geographic", 0, 0, 7, 9, 3),
    Grid.plane(-4.44, -4.87, 9.45, 15),
    Grid.plane(-1e8, -1e8, 2e8, 4096),
    Grid("plane", -(10**15), 10**15, 3, 2, 1),
    Grid("plane", 10**15, -(10**15), 2 * 10**15, 2 * 10**15, 4096),  # ends at 3e8
]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: f"{t.mechanism}-d{t.cells}-b{t.radius}")
def test_same_entropy_gives_the_reports_of_the_scalar_sampler(
    table: ResponseTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "CHUNK_DRAWS", 700)  # several chunks, the last ones short
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, table.cells, (2, 1500))
    out_rows, out_cols = kernels.draw_many(table, rows, cols, StreamEntropy("same"))
    sampler, entropy = Sampler(table), StreamEntropy("same")
    expected = [
        sampler.draw(r, c, entropy) for r, c in zip(rows.tolist(), cols.tolist(), strict=True)
    ]
    assert list(zip(out_rows.tolist(), out_cols.tolist(), strict=True)) == expected
    assert out_rows.dtype == out_cols.dtype == np.int64


@pytest.mark.parametrize("table", [t for t in TABLES if t.cells <= 4], ids=lambda t: t.mechanism)
def test_both_ends_of_every_interval_give_the_report_that_the_protocol_names(
    table: ResponseTable,
) -> None:
    row, col = table.cells - 1, 0
    values, expected, start = [], [], 0
    for length, report in naive.intervals(
        dict(table.weights), table.cells, table.base_weight, row, col
    ):
        values += [start, start + length - 1]
        expected += [report, report]
        start += length
    entropy = FixedEntropy(b"".join(u.to_bytes(7, "big") for u in values))
    out = kernels.draw_many(table, [row] * len(values), [col] * len(values), entropy)
    assert list(zip(*(array.tolist() for array in out), strict=True)) == expected


def test_no_entropy_is_left_over() -> None:
    table = response_table("dam", 2, 3)
    u = [0, table.total_weight, table.total_weight - 1, table.total_weight + 5, 1]
    entropy = FixedEntropy(b"".join(value.to_bytes(7, "big") for value in u))
    kernels.draw_many(table, [0, 1, 2], [2, 1, 0], entropy)
    assert entropy.used == 35


def test_public_function_draws_under_a_key_of_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = response_table("dam", 3.5, 15)
    cells = np.arange(15)
    monkeypatch.setattr("client_sdk.entropy.system", StreamEntropy("keys"))
    found = kernels.randomize_many(table, cells, cells)
    keys = StreamEntropy("keys")  # and nothing but keys is asked for
    expected = kernels.draw_many(table, cells, cells, lambda n: naive_aes.stream(keys(32), n))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("empty", [[], np.array([], np.int64), np.empty(0)])
def test_no_users_no_reports(empty: Any) -> None:
    rows, cols = kernels.randomize_many(TABLES[0], empty, empty)
    assert rows.shape == cols.shape == (0,)
    assert rows.dtype == cols.dtype == np.int64


def test_input_arrays_stay_as_they_are() -> None:
    cells = np.arange(15, dtype=np.uint8)[::-1]
    kernels.randomize_many(response_table("dam", 3.5, 15), cells, cells)
    assert cells.tolist() == list(range(14, -1, -1))


@pytest.mark.parametrize(
    ("rows", "cols", "rule"),
    [
        ([0.0], [0], "rows must be a one-dimensional array of integers"),
        ([0], [float("nan")], "cols must be a one-dimensional array of integers"),
        (["0"], [0], "rows must be a one-dimensional array of integers"),
        ([None], [0], "rows must be a one-dimensional array of integers"),
        ([True], [0], "rows must be a one-dimensional array of integers"),
        ([[0]], [0], "rows must be a one-dimensional array of integers"),
        ([[0], [0, 1]], [0], "rows must be a one-dimensional array of integers"),
        (3, 3, "rows must be a one-dimensional array of integers"),
        ([2**70], [0], "rows must be a one-dimensional array of integers"),
        (np.array([2**63], np.uint64), [0], "rows must lie in 0..14"),
        ([0, 15], [0, 0], "rows must lie in 0..14"),
        ([0, 0], [0, -1], "cols must lie in 0..14"),
        ([0, 1], [0], "rows and cols must have one length, got 2 and 1"),
    ],
)
def test_bad_cells_are_refused(rows: Any, cols: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        kernels.randomize_many(response_table("dam", 3.5, 15), rows, cols)


# Positions


def edges(grid: Grid) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Positions on and next to the borders of cells, outside the square and far from it."""
    steps = np.arange(-2, 3) * 5e-8
    y = np.array([grid.south + grid.height * k / grid.cells for k in range(-1, grid.cells + 2)])
    x = np.array([grid.west + grid.width * k / grid.cells for k in range(-1, grid.cells + 2)])
    sample = slice(None, None, max(1, len(y) // 12))
    ys = (y[sample, None] / 1e7 + steps).ravel()
    xs = (x[sample, None] / 1e7 + steps).ravel()
    if grid.kind == "geographic":  # where the nearer edge changes, half a turn away
        antipode = (grid.west + grid.width + (3_600_000_000 - grid.width) // 2) / 1e7
        xs = np.concatenate([xs, antipode + 2 * steps, antipode - 360 + 2 * steps])
    limits = (90.0, 360.0) if grid.kind == "geographic" else (1e308, 1e308)
    ys = np.concatenate([ys, [-limits[0], 0, limits[0]]])
    xs = np.concatenate([xs, [-limits[1], -limits[1] / 2, 0, limits[1] / 2, limits[1]]])
    positions = np.stack(np.meshgrid(ys, xs, indexing="ij"), -1).reshape(-1, 2)
    inside: np.ndarray[Any, np.dtype[np.float64]] = positions[(np.abs(positions) <= limits).all(1)]
    return inside


@pytest.mark.parametrize("grid", GRIDS)
def test_cells_equal_those_of_the_grid(grid: Grid) -> None:
    rng = np.random.default_rng(11)
    limits = (90, 360) if grid.kind == "geographic" else (4.5e8, 4.5e8)
    anywhere = rng.uniform(-1, 1, (300, 2)) * limits
    corner, extent = np.array([grid.south, grid.west]), np.array([grid.height, grid.width])
    near = (corner + rng.uniform(-0.5, 1.5, (300, 2)) * extent) / 1e7
    near = np.clip(near, [-limits[0], -limits[1]], limits)
    positions = np.concatenate([edges(grid), anywhere, near])
    rows, cols, inside = kernels.cells_of(grid, positions[:, 0], positions[:, 1])
    expected = [grid.cell(y, x) for y, x in positions.tolist()]
    assert list(zip(rows.tolist(), cols.tolist(), strict=True)) == expected
    assert inside.tolist() == [grid.contains(y, x) for y, x in positions.tolist()]


@settings(max_examples=200)
@given(
    st.sampled_from([g for g in GRIDS if g.kind == "geographic"]),
    st.floats(-90, 90),
    st.floats(-360, 360),
)
def test_cell_of_any_position_equals_that_of_the_grid(grid: Grid, lat: float, lon: float) -> None:
    rows, cols, inside = kernels.cells_of(grid, [lat], [lon])
    assert (rows[0], cols[0]) == grid.cell(lat, lon)
    assert inside[0] == grid.contains(lat, lon)


@settings(max_examples=100)
@given(
    st.sampled_from([g for g in GRIDS if g.kind == "plane"]),
    *[st.floats(allow_nan=False, allow_infinity=False) | st.floats(-5e8, 5e8)] * 2,
)
def test_cell_of_any_finite_plane_position_equals_that_of_the_grid(
    grid: Grid, y: float, x: float
) -> None:
    rows, cols, inside = kernels.cells_of(grid, [y], [x])
    assert (rows[0], cols[0]) == grid.cell(y, x)
    assert inside[0] == grid.contains(y, x)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_plane_positions_that_are_not_finite_are_refused(bad: float) -> None:
    for at in ([bad], [0.0]), ([0.0], [bad]):
        with pytest.raises(PositionError, match="1 of 1 positions are not finite"):
            kernels.cells_of(Grid.plane(0, 0, 1, 2), *at)


def test_positions_may_be_of_any_number_type() -> None:
    grid = GRIDS[0]
    for dtype in (np.float32, np.float64, np.int8, np.uint16):
        rows, cols, inside = kernels.cells_of(grid, np.array([52], dtype), np.array([13], dtype))
        assert (rows[0], cols[0]) == grid.cell(52, 13)
        assert not inside[0]
    assert all(a.shape == (0,) for a in kernels.cells_of(grid, [], []))


@pytest.mark.parametrize(
    ("lats", "lons", "error"),
    [
        (["52.123"], [13.0], ParameterError),
        ([None], [13.0], ParameterError),
        ([True], [13.0], ParameterError),
        ([52.123 + 0j], [13.0], ParameterError),
        (52.123, 13.0, ParameterError),
        ([[52.123]], [[13.0]], ParameterError),
        ([52.123, 52.123], [13.0], ParameterError),
        ([float("nan")], [13.0], PositionError),
        ([52.123], [float("inf")], PositionError),
        ([90.123], [13.0], PositionError),
        ([52.123], [-360.123], PositionError),
    ],
)
def test_bad_positions_are_refused_and_not_repeated(
    lats: Any, lons: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        kernels.cells_of(GRIDS[0], lats, lons)
    text = f"{caught.value!r} {caught.value.__context__!r}"
    assert "123" not in text


def test_without_a_place_for_a_cache_kernels_are_compiled_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def njit(cache: bool = False, nogil: bool = False) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels, "njit", njit)
    assert kernels.compiled(abs) is abs
    assert asked == [True, False]
