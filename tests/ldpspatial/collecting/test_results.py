"""Files of results, read back with the readers that others would use."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from client_sdk import Collection, Grid
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.results import read_estimate, write_csv, write_geojson, write_npz
from ldpspatial.errors import InputError
from ldpspatial.estimation import EM, estimate
from tests.support.results import CITY, GRIDS, INTERVALS, RESULT, result_on


@pytest.fixture(params=GRIDS)
def grid(request: pytest.FixtureRequest) -> Grid:
    return GRIDS[request.param]


def test_npz_holds_all_that_the_estimate_holds(tmp_path: Path) -> None:
    write_npz(tmp_path / "estimate.npz", CITY, RESULT, INTERVALS)
    with np.load(tmp_path / "estimate.npz", allow_pickle=False) as file:
        held = dict(file)
    arrays = {
        "density": RESULT.density,
        "counts": RESULT.counts,
        "trace": np.array(RESULT.trace),
        "lower": INTERVALS.lower,
        "upper": INTERVALS.upper,
    }
    scalars: dict[str, Any] = {
        "n": RESULT.n,
        "log_likelihood": RESULT.log_likelihood,
        "iterations": RESULT.iterations,
        "converged": RESULT.converged,
        "rule": RESULT.rule,
        "smoothing": "none",
        "level": 0.9,
        "method": "fisher",
        "collection": CITY.to_json(),
        "digest": CITY.digest,
    }
    assert held.keys() == arrays.keys() | scalars.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(held[name], values, err_msg=name)
    assert {name: held[name].item() for name in scalars} == scalars
    assert held["counts"].dtype == np.int64


def test_an_estimate_can_be_made_again_from_the_npz_alone(tmp_path: Path) -> None:
    write_npz(tmp_path / "estimate.npz", CITY, RESULT)
    with np.load(tmp_path / "estimate.npz", allow_pickle=False) as file:
        collection = Collection.from_json(file["collection"].item(), file["digest"].item())
        again = estimate(StampChannel(collection.table), file["counts"], "em")
        np.testing.assert_array_equal(again.density, file["density"])
        assert not {"lower", "upper", "level", "method"} & set(file)


@pytest.mark.parametrize("limit", [1, 3])
def test_a_limit_that_ended_a_fit_is_read_back(tmp_path: Path, limit: int) -> None:
    short = EM("published", max_iterations=limit).fit(RESULT.channel, RESULT.counts)
    assert not short.converged
    write_npz(tmp_path / "estimate.npz", CITY, short)
    assert read_estimate(tmp_path / "estimate.npz")[1].estimator == short.estimator
    write_npz(tmp_path / "estimate.npz", CITY, EM().fit(RESULT.channel, RESULT.counts))
    assert read_estimate(tmp_path / "estimate.npz")[1].estimator == EM()


def test_equal_results_give_equal_npz_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, CITY, RESULT, INTERVALS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_csv_of_cells_holds_centres_and_shares(tmp_path: Path, grid: Grid) -> None:
    result = result_on(grid)
    write_csv(tmp_path / "cells.csv", grid, result)
    table = pa_csv.read_csv(tmp_path / "cells.csv")
    places = ["y", "x"] if grid.kind == "plane" else ["latitude", "longitude"]
    assert table.column_names == ["row", "col", *places, "density"]
    cells = list(np.ndindex(result.density.shape))
    assert list(zip(*table.select(["row", "col"]).to_pydict().values(), strict=True)) == cells
    centers = [grid.center(row, col) for row, col in cells]
    assert list(zip(*table.select(places).to_pydict().values(), strict=True)) == centers
    assert table.column("density").to_pylist() == result.density.ravel().tolist()


def test_csv_of_cells_holds_intervals(tmp_path: Path) -> None:
    write_csv(tmp_path / "cells.csv", CITY.grid, RESULT, INTERVALS)
    table = pa_csv.read_csv(tmp_path / "cells.csv")
    assert table.column_names[-2:] == ["lower", "upper"]
    assert table.column("lower").to_pylist() == INTERVALS.lower.ravel().tolist()
    assert table.column("upper").to_pylist() == INTERVALS.upper.ravel().tolist()


@pytest.mark.parametrize("write", [write_geojson, write_csv])
def test_a_result_that_does_not_fit_the_grid_is_refused(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "cells"
    other = Grid.from_center(48.0, 11.0, 12_000.0, 6)
    with pytest.raises(InputError, match=r"estimate\.density must be .* of shape \(6, 6\)"):
        write(path, other, RESULT)
    narrow = dataclasses.replace(INTERVALS, upper=INTERVALS.upper[:, 1:])
    with pytest.raises(
        InputError, match=r"uncertainty\.upper must be an array of numbers of shape"
    ):
        write(path, CITY.grid, RESULT, narrow)
    assert not list(tmp_path.iterdir())


def test_counts_of_another_output_domain_are_refused(tmp_path: Path) -> None:
    wider = Collection.create("test", CITY.grid, 3.5, radius=2)
    with pytest.raises(InputError, match=r"estimate\.counts must have the shape \(11, 11\)"):
        write_npz(tmp_path / "estimate.npz", wider, RESULT)
