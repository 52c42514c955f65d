"""Two servers beside one: the command on an invented town, and what its tables say."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cities import City
from experiments.studies import two_servers as module
from experiments.studies.levels import Setting
from experiments.studies.two_servers import error_table, held, size_table, two_servers
from ldpspatial.places.users import cells_by_user


def test_ratios_are_of_geometric_means_over_cities() -> None:
    found = {}
    for city, factor in (("one", 2.0), ("other", 8.0)):
        for users in module.USERS:
            for epsilon in module.EPSILONS:
                errors = {label: np.log([0.1, 0.2, 0.3]) for some in module.RELEASES.values()
                          for label in some}  # fmt: skip
                errors[module.TWO] = errors[module.TWO] + np.log(factor)
                found[Setting(city, 64, users, epsilon)] = errors
    lines = error_table(found).splitlines()
    assert len(lines) == 2 + len(module.USERS) * len(module.EPSILONS) + 1
    assert lines[-1].endswith("| 4.00, 4.00, 4.00 | 1.00, 1.00, 1.00 |")
    assert "| 1,000 | 0.5 | 0.1000 | 0.1000 | 0.4000 |" in lines[2]


def test_sizes_are_of_the_shortest_proofs() -> None:
    assert "| 4,096 | 66 | 259 | 69,728 | 64 | 70,008 | 2,176 |" in size_table()


def test_what_is_held_is_a_share_of_rectangles_and_cells() -> None:
    rng = np.random.default_rng(1)
    users = cells_by_user(range(3000), rng.integers(64, size=3000), (8, 8))
    found = held(users, 1.0, 10, rng)
    assert 0.8 < found.rectangles <= 1.0
    assert 0.8 < found.cells <= 1.0
    assert 0 < held(users, 20.0, 2, rng).width < found.width < 0.5


def test_the_command_runs_and_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    marks = [f"<!-- {name} -->\n<!-- /{name} -->" for name in
             ("two-servers-errors", "two-servers-intervals", "two-servers-sizes")]  # fmt: skip
    (docs / module.PAGE).write_text("\n\n".join(marks))
    town = City("town", (0.0, 0.0, 1.0), np.random.default_rng(1).beta(2, 3, (500, 2)))
    monkeypatch.setattr(module, "cities", lambda data, names: [town])
    monkeypatch.setattr(module, "DOCS", docs)
    for name, value in (("SIDE", 8), ("BLOCKS", 8), ("USERS", (100,)), ("EPSILONS", (1.0,))):
        monkeypatch.setattr(module, name, value)
    given = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--repeats", "2"]
    run = CliRunner().invoke(two_servers, [*given, "--jobs", "1", "--write"])
    assert run.exit_code == 0, run.output
    page = (docs / module.PAGE).read_text()
    assert "| 100 | 1 |" in page
    assert "nan" not in page
    assert "| 16,384 |" in page
