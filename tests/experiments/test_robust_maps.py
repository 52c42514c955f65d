"""The study of the robust estimator: what is forged, what is told, on a small map."""

import numpy as np
import pytest

from client_sdk import response_table
from experiments.studies import robust_maps as module
from ldpspatial import StampChannel

CHANNEL = StampChannel(response_table("dam", 3.5, 12))
LAW = np.eye(12) / 12


def test_what_is_forged_are_distributions_over_output_cells() -> None:
    shapes = dict(module.shapes_of(CHANNEL, LAW))
    assert {"one output", "margin", "unrandomised, far corner", "noise"} < set(shapes)
    for shape in shapes.values():
        assert shape.sum() == pytest.approx(1)
        assert (shape >= 0).all()
        assert not shape[~CHANNEL.support].any()


def test_reports_of_one_output_cost_the_robust_map_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "USERS", 20_000)
    shapes = dict(module.shapes_of(CHANNEL, LAW))
    rng = np.random.default_rng(1)
    errors = module.measured(CHANNEL, LAW, shapes["unrandomised, far corner"], 0.05, rng)
    assert errors.robust < 0.5 * errors.plain
    nothing = module.measured(CHANNEL, LAW, shapes[module.NOTHING], 0.0, rng)
    assert nothing.robust == nothing.plain == nothing.honest


def test_the_table_has_means_and_the_worst() -> None:
    errors = [module.Errors(1.0, 2.0, 1.0), module.Errors(2.0, 1.0, 1.0)]
    found = {("margin", epsilon, share): errors for epsilon, share in module.FORGED}
    assert "| margin | 1.00 (2.00), 0.71 |" in module.table_text(found)
