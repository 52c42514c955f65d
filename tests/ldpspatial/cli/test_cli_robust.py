"""``--estimator robust``: what is taken for forged is left out, and told."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpspatial import Field
from ldpspatial.collecting.results import read_estimate
from ldpspatial.estimation import Robust
from tests.support.command_line import succeed

SQUARE = ("--plane", "0,0,8", "--cells", "6", "--epsilon", "2")
PEOPLE = 4_000
FORGED = 400


def estimator_of(folder: Path) -> dict[str, object]:
    found = json.loads((folder / "summary.json").read_text())["estimator"]
    assert isinstance(found, dict)
    return found


def test_what_was_taken_out_is_told_and_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    people = np.column_stack([rng.uniform(0, 8, PEOPLE), rng.uniform(0, 3.9, PEOPLE)])
    np.savetxt(tmp_path / "people.csv", people, delimiter=",", header="y,x", comments="")
    plain = tmp_path / "plain"
    succeed("simulate", tmp_path / "people.csv", *SQUARE, "--rule", "em", "--out", plain)
    honest = pq.read_table(plain / "reports.parquet").select(["row", "col"])
    one = pa.table({"row": [0] * FORGED, "col": [5] * FORGED}, schema=honest.schema)
    pq.write_table(pa.concat_tables([honest, one]), tmp_path / "all.parquet")
    pq.write_table(honest, tmp_path / "honest.parquet")
    for name in ("all", "honest"):
        succeed("estimate", plain / "collection.json", tmp_path / f"{name}.parquet", "--estimator",
                "robust", "--out", tmp_path / name)  # fmt: skip
    found = estimator_of(tmp_path / "all")
    assert found["taken_shapes"] == "single outputs"
    assert 0.05 < float(str(found["taken_out"])) < 0.1
    genuine = estimator_of(tmp_path / "honest")
    assert (genuine["taken_out"], genuine["taken_shapes"]) == (0, "nothing")
    read = read_estimate(tmp_path / "all")[1]
    assert read.estimator == Robust()
    assert read.estimator != Field()
    assert read.n == PEOPLE + FORGED
    assert read.facts["taken_out"] == found["taken_out"]
