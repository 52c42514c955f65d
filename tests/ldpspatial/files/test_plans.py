"""Plans written and read back: their flows turn one map into the other, at the stated distance."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from ldpspatial.errors import InputError
from ldpspatial.files.plans import is_plan, write_plan
from ldpspatial.metrics import transport

RNG = np.random.default_rng(9)
P, Q = RNG.multinomial(1000, np.full(35, 1 / 35), 2).reshape(2, 5, 7)


def read(path: Path) -> dict[str, Any]:
    table = pa_csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("order", "ground"), [(1, "cityblock"), (2, "euclidean")])
def test_the_flows_of_a_written_plan_turn_p_into_q(
    suffix: str, order: int, ground: str, tmp_path: Path
) -> None:
    path = tmp_path / f"plan.{suffix}"
    plan = transport(P, Q, order, ground, (2.0, 3.0))
    write_plan(path, plan)
    flows = read(path)
    assert list(flows) == [
        *("source_row", "source_col", "target_row", "target_col", "mass", "distance")
    ]
    left = P / P.sum()
    np.subtract.at(left, (flows["source_row"], flows["source_col"]), flows["mass"])
    np.add.at(left, (flows["target_row"], flows["target_col"]), flows["mass"])
    np.testing.assert_allclose(left, Q / Q.sum(), atol=1e-15)
    cost = flows["mass"] * flows["distance"] ** order
    assert cost.sum() == pytest.approx(plan.value**order, rel=1e-12)
    assert (np.diff(cost) <= 0).all()
    down = 2.0 * abs(flows["source_row"] - flows["target_row"])
    right = 3.0 * abs(flows["source_col"] - flows["target_col"])
    ways = down + right if ground == "cityblock" else np.hypot(down, right)
    np.testing.assert_allclose(flows["distance"], ways, rtol=1e-14)


def test_equal_maps_give_a_table_without_lines(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.parquet", transport(P, P))
    assert {len(column) for column in read(tmp_path / "plan.parquet").values()} == {0}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("moved", [P, Q])
def test_a_plan_is_known_by_its_columns(tmp_path: Path, suffix: str, moved: np.ndarray) -> None:
    file = tmp_path / f"plan.{suffix}"
    write_plan(file, transport(P, moved))
    assert is_plan(file)
    file.write_bytes(b"row,col\n1,2\n\xff")
    assert not is_plan(file)


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path must end in .csv or .parquet, got 'plan.txt'"):
        write_plan(tmp_path / "plan.txt", transport(P, Q))
    assert not list(tmp_path.iterdir())
