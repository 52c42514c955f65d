"""Error curves: means, intervals, and what may not be averaged."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest
from matplotlib.figure import Figure
from scipy import stats

from client_sdk import Grid
from ldpspatial.comparison import compare, error_curve, plot_error_curves
from ldpspatial.comparison.curves import LEVEL
from ldpspatial.comparison.promises import without_promise
from ldpspatial.comparison.results import curve_rows, parts, write_results
from ldpspatial.comparison.scores import METRICS
from ldpspatial.errors import InputError
from ldpspatial.plotting.error_curves import curves_figure, legend_handles
from ldpspatial.privacy.shuffling import amplified_epsilon
from ldpspatial.release.local import Ahead, Dam, Hdg, Hio, KRr, Matched, PlanarLaplace, SemGeoI
from ldpspatial.release.non_private import NonPrivate
from ldpspatial.release.release import Release
from tests.support.blurs import Blur, Changing, Loose


@pytest.fixture(scope="module")
def table() -> pa.Table:
    people = np.random.default_rng(0).normal(4, 1, (300, 2))
    wanted = [Blur(), Dam(), NonPrivate()]
    return compare(
        people, Grid.plane(0, 0, 8, 8), [2.0, 0.5], wanted, 4, np.random.default_rng(1),
        users=[100], truth="all", metrics=["l1", "similarity", "w2"],
    )  # fmt: skip


def named_in(figure: Figure) -> list[str]:
    (axes,) = figure.axes
    return [str(handle.get_label()) for handle in legend_handles(axes)]


def test_a_curve_is_the_mean_with_a_t_interval(table: pa.Table) -> None:
    curve = error_curve(table, "blur", "l1")
    rows = [row for row in table.to_pylist() if row["release"] == "blur"]
    assert curve.x.tolist() == [0.5, 2.0]
    assert curve.runs.tolist() == [4, 4]
    for k, epsilon in enumerate(curve.x):
        errors = [row["l1"] for row in rows if row["epsilon"] == epsilon]
        interval = stats.t.interval(LEVEL, 3, np.mean(errors), stats.sem(errors))
        assert curve.mean[k] == pytest.approx(np.mean(errors))
        assert (curve.lower[k], curve.upper[k]) == pytest.approx(interval)


def test_the_interval_covers_at_its_level() -> None:
    # 4,000 curves of 5 normal errors: a count below 3,640 has probability < 1e-20 at 95 %,
    # and the normal quantile in place of t's would cover 88 %.
    rng = np.random.default_rng(7)
    values = 10 + rng.normal(size=(4000, 5))
    rows = [
        row | {"release": str(k)} for k in range(4000) for row in _rows("w2", values[k].tolist())
    ]
    table = pa.Table.from_pylist(rows)
    covered = 0
    for k in range(0, 4000, 10):
        curve = error_curve(table, str(k), "w2")
        covered += int(curve.lower[0] <= 10 <= curve.upper[0])
        assert curve.mean[0] == pytest.approx(values[k].mean())
    assert 364 <= covered <= 396


def _rows(metric: str, values: list[float]) -> list[dict[str, object]]:
    return [
        {"release": "0", "model": "local", "data": "", "sigma": 0.0, "truth": "users",
         "blocks": None, "epsilon": 1.0, "replacement_epsilon": 1.0, "users": 1, "cells": 1,
         "claim_notion": "differential privacy", "claim_distance": None, "claim_unit": "user",
         "claim_neighbours": "replace", "claim_delta": 0.0, "replacement_delta": 0.0,
         "claim_conditions": "", metric: value}
        for value in values
    ]  # fmt: skip


def test_one_run_has_no_interval(table: pa.Table) -> None:
    curve = error_curve(table.slice(0, 1), "blur", "l1")
    assert np.isnan(curve.lower[0])


def test_under_replacement_central_claims_are_worth_half(table: pa.Table) -> None:
    assert error_curve(table, "blur", "l1", "replacement_epsilon").x.tolist() == [1.0, 4.0]
    assert error_curve(table, "dam", "l1", "replacement_epsilon").x.tolist() == [0.5, 2.0]


def test_shuffled_local_reports_are_read_at_the_central_epsilon(table: pa.Table) -> None:
    curve = error_curve(table, "dam", "l1", "shuffled_epsilon", shuffle_delta=1e-3)
    assert curve.x.tolist() == [amplified_epsilon(x, 100, 1e-3) for x in (0.5, 2.0)]
    assert curve.x[0] < 0.5
    assert error_curve(table, "blur", "l1", "shuffled_epsilon").x.tolist() == [1.0, 4.0]


def test_shuffled_curves_say_their_delta(table: pa.Table) -> None:
    named = named_in(plot_error_curves(table, "l1", "shuffled_epsilon", shuffle_delta=1e-3))
    assert {"local: dam (delta 0.001)", "central: blur"} <= set(named)


@pytest.mark.parametrize(
    "release",
    [PlanarLaplace(), Ahead(), Hio(), Hdg(), Matched(SemGeoI(), Dam(), 8)],
    ids=lambda release: release.name,
)
def test_claims_that_shuffling_is_not_proved_for_are_not_amplified(release: Release) -> None:
    """A loss that grows with distance, rounds, groups of fixed sizes."""
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    table = compare(
        people, Grid.plane(0, 0, 8, 8), [0.5, 2.0], [release], 1, np.random.default_rng(1),
        metrics=["l1"],
    )  # fmt: skip
    name = table["release"][0].as_py()  # may tell fields, too
    plain = error_curve(table, name, "l1", "replacement_epsilon").x
    assert error_curve(table, name, "l1", "shuffled_epsilon").x.tolist() == plain.tolist()


def test_nothing_is_averaged_over_other_settings(table: pa.Table) -> None:
    with pytest.raises(InputError, match="epsilon must have one value along a curve over users"):
        error_curve(table, "blur", "l1", "users")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("dim", "l1", "epsilon"), "release must be in the table"),
        (("blur", "w7", "epsilon"), "metric must be one of"),
        (("blur", "mse", "epsilon"), "metric mse was not measured"),
        (("blur", "l1", "time"), "against must be one of"),
    ],
)
def test_bad_curves(table: pa.Table, asked: tuple[str, str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        error_curve(table, *asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("against", ["epsilon", "replacement_epsilon", "shuffled_epsilon"])
@pytest.mark.parametrize("metric", ["l1", "similarity", "w2"])
def test_the_figure_has_a_line_a_release_grouped_by_trust(
    table: pa.Table, metric: str, against: str
) -> None:
    mixed = against == "epsilon"
    figure = plot_error_curves(table, metric, against, "three clouds", mixed=mixed)  # type: ignore[arg-type]
    figure.savefig(io.BytesIO())
    (axes,) = figure.axes
    named = [str(handle.get_label()) for handle in legend_handles(axes)]
    assert [name.split(" (")[0] for name in named] == [
        *("local: dam", "central: blur", "none: non-private")
    ]
    assert axes.get_legend() is not None
    for bars, release in zip(axes.containers, ("dam", "blur"), strict=False):
        curve = error_curve(table, release, metric, against)  # type: ignore[arg-type]
        ends = np.array(bars[2][0].get_segments())
        assert ends[:, :, 0] == pytest.approx(np.column_stack([curve.x] * 2))
        assert ends[:, :, 1] == pytest.approx(np.column_stack([curve.lower, curve.upper]))


def test_promises_of_two_kinds_are_not_drawn_as_one(tmp_path: Path) -> None:
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    wanted = [Dam(), PlanarLaplace()]
    table = compare(
        people, Grid.plane(0, 0, 8, 4), [1.0, 2.0], wanted, 2, np.random.default_rng(1),
        metrics=["l1"],
    )  # fmt: skip
    told = "got differential privacy, per user: dam; geo-indistinguishability per cell, per user"
    with pytest.raises(InputError, match=told) as refused:
        plot_error_curves(table, "l1")
    assert "ldpspatial.release.local.Matched" in str(refused.value)
    assert named_in(plot_error_curves(table, "l1", mixed=True)) == [
        "local: dam\n(differential privacy, per user)",
        "local: planar-laplace\n(geo-indistinguishability per cell, per user)",
    ]
    (axes,) = plot_error_curves(table, "l1", releases=["planar-laplace"]).axes
    assert [str(each.get_label()) for each in legend_handles(axes)] == ["local: planar-laplace"]
    written = {path.name for path in write_results(tmp_path, table, ["l1"])}
    assert {name for name in written if name.endswith(".png")} == {
        "l1-epsilon-replace.png",
        "l1-epsilon-geo-indistinguishability-per-cell-per-user-replace.png",
        "l1-replacement.png",
        "l1-replacement-geo-indistinguishability-per-cell-per-user.png",
    }
    drawn = {row["release"]: row for row in pa_csv.read_csv(tmp_path / "curves.csv").to_pylist()}
    assert drawn["planar-laplace"]["claim_notion"] == "geo-indistinguishability"
    assert drawn["dam"]["claim_neighbours"] == "replace"


def test_what_runs_at_the_local_privacy_of_another_is_marked_over_the_epsilon_asked_for() -> None:
    """It claims 2.6, not 1: over epsilon it would be better than the same release without it."""
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    wanted = [KRr(), Matched(KRr(), Dam(), cells=8)]
    table = compare(
        people, Grid.plane(0, 0, 8, 8), [1.0], wanted, 2, np.random.default_rng(1), metrics=["l1"]
    )
    own = table["claim_epsilon"].to_pylist()[-1]
    assert own > 2
    for against in ("epsilon", "users"):
        with pytest.raises(InputError, match="at the local privacy of dam: k-rr matched to dam"):
            plot_error_curves(table, "l1", against)  # type: ignore[arg-type]
    first, second = named_in(plot_error_curves(table, "l1", "epsilon", mixed=True))
    assert "local privacy" not in first
    assert second.endswith("replace, at the local privacy of dam)")
    # Over the epsilon of one relation it stands where its own claim does.
    curve = error_curve(table, "k-rr matched to dam", "l1", "replacement_epsilon")
    assert curve.x.tolist() == pytest.approx([own])
    assert len(named_in(plot_error_curves(table, "l1"))) == 2


def test_relations_are_not_drawn_as_one_over_epsilons_of_their_own(
    table: pa.Table, tmp_path: Path
) -> None:
    for against in ("epsilon", "users"):
        some = table if against == "epsilon" else table.filter(pc.equal(table["epsilon"], 2.0))
        with pytest.raises(InputError, match="add or remove: blur") as refused:
            plot_error_curves(some, "l1", against)  # type: ignore[arg-type]
        assert ("over replacement_epsilon" in str(refused.value)) == (against == "epsilon")
    marked = ["local: dam (replace)", "central: blur (add or remove)", "none: non-private"]
    assert named_in(plot_error_curves(table, "l1", "epsilon", mixed=True)) == marked
    assert named_in(plot_error_curves(table, "l1")) == [name.split(" (")[0] for name in marked]
    (tmp_path / "l1-epsilon-before.png").touch()
    (tmp_path / "mine.png").touch()
    write_results(tmp_path, table, ["l1"], mixed=True)
    assert {path.name for path in tmp_path.glob("*.png")} == {
        *(f"l1-epsilon-{each}.png" for each in ("replace", "add-or-remove", "mixed")),
        *("l1-replacement.png", "mine.png"),
    }


def test_promises_with_a_delta_and_promises_that_change_have_curves_of_their_own(
    tmp_path: Path,
) -> None:
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    wanted = [Blur(), Loose(), Loose(delta=0.1), Changing()]
    table = compare(
        people, Grid.plane(0, 0, 8, 4), [1.0, 3.0], wanted, 2, np.random.default_rng(1),
        metrics=["l1"],
    )  # fmt: skip
    with pytest.raises(InputError, match=r"with delta: loose, loose:delta=0\.1; .*report"):
        plot_error_curves(table, "l1")
    with pytest.raises(InputError, match=r"one kind of thing along a curve .* of 'changing'"):
        error_curve(table, "changing", "l1")
    # At epsilon 3, delta 0.1 comes to 0.1 (1 + e^3) > 1 under replacement: that is no promise.
    loose = error_curve(table, "loose:delta=0.1", "l1", "replacement_epsilon")
    assert loose.x.tolist() == [2.0]
    assert loose.delta == pytest.approx([0.1 * (1 + np.e)])
    assert without_promise(table, "replacement_epsilon") == {"loose:delta=0.1": [3.0]}
    assert without_promise(table, "epsilon") == {}
    nothing = table.filter(pc.equal(table["epsilon"], 3.0))
    with pytest.raises(InputError, match=r"each delta of 'loose:delta=0\.1' is 1"):
        plot_error_curves(nothing, "l1", releases=["loose:delta=0.1"])
    assert named_in(plot_error_curves(table, "l1", mixed=True)) == [
        "central: blur\n(differential privacy, per user)",
        "central: loose (delta 0.037 to 0.21)\n(differential privacy, per user, with delta)",
        "central: loose:delta=0.1 (delta 0.37)\n(differential privacy, per user, with delta)",
        "central: changing\n(differential privacy, per user)",
        "central: changing\n(differential privacy, per report)",
    ]
    written = {path.name for path in write_results(tmp_path, table, ["l1"])}
    own = ("add-or-remove", "with-delta-add-or-remove", "replace")
    report = "differential-privacy-per-report"
    assert {name for name in written if name.endswith(".png")} == {
        *(f"l1-epsilon-{each}.png" for each in (*own, f"{report}-replace")),
        *(f"l1-replacement{each}.png" for each in ("", "-with-delta", f"-{report}")),
    }
    rows = pa_csv.read_csv(tmp_path / "curves.csv").to_pylist()
    told = [
        (row["release"], row["claim_unit"], row["claim_delta"], row["replacement_epsilon"])
        for row in rows
        if row["epsilon"] == 3
    ]
    assert told == [
        *(("blur", "user", 0, 6), ("loose", "user", 0.01, 6)),
        *(("loose:delta=0.1", "user", 0.1, None), ("changing", "report", 0, 3)),
    ]
    assert [row["replacement_delta"] for row in rows][5] == 1


def test_runs_of_one_release_with_two_settings_are_no_curve(table: pa.Table) -> None:
    rows = table.to_pylist()
    other = [row | {"parameters": "Blur(width=2.0)"} for row in rows]
    with pytest.raises(InputError, match="parameters must have one value along a curve"):
        error_curve(pa.Table.from_pylist(rows + other, table.schema), "blur", "l1")


def test_without_a_promise_the_line_lies_at_the_mean(table: pa.Table) -> None:
    (axes,) = plot_error_curves(table, "l1", "replacement_epsilon").axes
    (line,) = [each for each in axes.get_lines() if each.get_linestyle() == "--"]
    assert line.get_ydata() == pytest.approx(
        [error_curve(table, "non-private", "l1").mean.mean()] * 2
    )


def test_intervals_stay_within_what_the_metric_can_be() -> None:
    rows = _rows("l1", [0.01, 1.9])
    curve = error_curve(pa.Table.from_pylist(rows), "0", "l1")
    assert (curve.lower[0], curve.upper[0]) == (0.0, 2.0)


def test_a_run_without_a_value_leaves_a_gap_and_is_no_error() -> None:
    curve = error_curve(pa.Table.from_pylist(_rows("pearson", [0.5, np.nan])), "0", "pearson")
    assert np.isnan(curve.mean[0])


def test_a_label_with_dollars_is_drawn_as_it_is_written(table: pa.Table, tmp_path: Path) -> None:
    label = r"cost $\frac{1}$, $5 to b$"
    rows = [row | {"release": label} for row in table.to_pylist() if row["release"] == "blur"]
    written = pa.Table.from_pylist(rows, schema=table.schema)
    figure = plot_error_curves(written, "l1", title=label)
    (axes,) = figure.axes
    figure.savefig(tmp_path / "a.png")  # a formula that is none would fail when it is drawn
    legend = axes.get_legend()
    assert legend is not None
    for text in (*legend.get_texts(), axes.title):
        assert label in text.get_text()
        assert not text.get_parse_math()


@pytest.mark.parametrize("logarithmic", [True, False])
@pytest.mark.parametrize("error", [0.0959692892788452, 0.05, 1e-9, 5.0, 0.0])
def test_an_error_that_stands_alone_lies_within_the_axis(error: float, logarithmic: bool) -> None:
    """One run at one epsilon: what bars of no length add by rounding is no axis to draw on."""
    curve = error_curve(pa.Table.from_pylist(_rows("kl", [error])), "0", "kl")
    figure = curves_figure([curve], ("epsilon", "kl"), logarithmic)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert low <= error <= high
    assert high - low > error / 10
    with np.errstate(all="raise"):
        figure.savefig(io.BytesIO(), format="png")


def test_the_axis_says_what_was_measured(table: pa.Table) -> None:
    changed = pa.Table.from_pylist(
        [row | {"blocks": 4, "sigma": 2.0} for row in table.to_pylist()], table.schema
    )
    labels = [plot_error_curves(changed, metric).axes[0].get_ylabel() for metric in ("w2", "l1")]
    assert "4 x 4 blocks" in labels[0]
    assert "blocks" not in labels[1]
    assert all("Gaussian filter of 2 cells" in label for label in labels)


def test_an_error_of_nothing_is_named_below_the_axis() -> None:
    some = [row | {"release": "1"} for row in _rows("l1", [0.1, 0.2])]
    figure = plot_error_curves(pa.Table.from_pylist(_rows("l1", [0.0, 0.0]) + some), "l1")
    named = figure.axes[0].get_legend_handles_labels()[1]
    assert named == ["local: 0 (0, below the axis)", "local: 1"]
    alone = plot_error_curves(pa.Table.from_pylist(_rows("l1", [0.0, 0.0])), "l1")
    alone.savefig(io.BytesIO())
    assert alone.axes[0].get_yscale() == "linear"


def test_every_metric_of_the_truth_itself_can_be_drawn() -> None:
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    grid = Grid.plane(0, 0, 8, 8)
    rng = np.random.default_rng(1)
    table = compare(people, grid, [1.0], [NonPrivate()], 3, rng, metrics=list(METRICS))
    for metric in METRICS:  # kl is -1e-14 by rounding
        plot_error_curves(table, metric).savefig(io.BytesIO())
        curve = error_curve(table, "non-private", metric)
        assert curve.lower[0] <= curve.mean[0] <= curve.upper[0]


def test_combinations_without_runs_are_no_part() -> None:
    rows = [
        row | {"users": users, "cells": cells}
        for users, cells in ((10, 4), (1_000_001, 8))
        for row in _rows("l1", [0.1, 0.2])
    ]
    assert [part.name for part in parts(pa.Table.from_pylist(rows))] == [
        "-cells4",
        "-cells8",
    ]


def test_a_part_for_each_value_of_what_else_varies() -> None:
    people = np.random.default_rng(0).normal(4, 1, (60, 2))
    grid = Grid.plane(0, 0, 8, 8)
    both = compare(people, grid, [1, 2], [Blur()], 2, np.random.default_rng(1),
                   users=[20, 40], cells=[4, 8], metrics=["l1"])  # fmt: skip
    found = list(parts(both))
    assert [(part.setting, part.name) for part in found] == [
        ("epsilon", f"-users{users}-cells{cells}") for users in (20, 40) for cells in (4, 8)
    ]
    assert found[0].told == ", users 20, cells 4"
    assert [part.table.num_rows for part in found] == [4] * 4
    rows = list(curve_rows(found[1], "l1", 1e-3))
    assert [(row["users"], row["cells"], row["epsilon"]) for row in rows] == [
        (20, 8, 1.0),
        (20, 8, 2.0),
    ]
    assert [row["replacement_epsilon"] for row in rows] == [2.0, 4.0]
    assert [row["shuffled_epsilon"] for row in rows] == [2.0, 4.0]
    assert [row["shuffle_delta"] for row in rows] == [0.0, 0.0]  # not local, and not shuffled


def test_tables_have_the_delta_of_each_curve_that_is_shuffled(table: pa.Table) -> None:
    deltas = {
        row["release"]: row["shuffle_delta"]
        for part in parts(table)
        for row in curve_rows(part, "l1", 1e-3)
    }
    assert (deltas["dam"], deltas["blur"]) == (1e-3, 0.0)


def test_a_local_claim_with_a_delta_is_not_amplified(table: pa.Table) -> None:
    """The bound on shuffled reports is for epsilon alone; releases of others may have a delta."""
    place = table.column_names.index("claim_delta")
    loose = table.set_column(place, "claim_delta", pa.array([1e-6] * table.num_rows))
    shuffled = error_curve(table, "dam", "l1", "shuffled_epsilon").x
    replaced = error_curve(loose, "dam", "l1", "replacement_epsilon").x
    assert (shuffled < replaced).all()
    np.testing.assert_array_equal(error_curve(loose, "dam", "l1", "shuffled_epsilon").x, replaced)
