"""Error curves from the table of runs: means with intervals, and their figure.

Releases of different trust models promise different things at the same epsilon. So a curve says
which epsilon it runs over: that of each claim under its own neighbouring relation, or that which
every claim implies under one relation, replacement of one user's data.

A figure holds promises of one kind (:mod:`ldpspatial.comparison.promises`), unless a mixed one is
asked for by name; that one says of each curve what it promises.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import stdtrit

from ldpspatial.comparison.promises import (
    NOTHING,
    Against,
    by_promise,
    delta_column,
    promises,
    promising,
)
from ldpspatial.comparison.scores import METRICS
from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import ONE_MECHANISM
from ldpspatial.privacy.shuffling import amplified_epsilon
from ldpspatial.validate import instance, number_in, one_of, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

AXES: dict[str, str] = {
    "epsilon": "epsilon, each claim under its own relation",
    "replacement_epsilon": "epsilon, every claim under replacement of one user",
    "shuffled_epsilon": "epsilon as before, local reports shuffled where the bound covers them",
    "users": "users",
    "cells": "cells along a side",
}
LEVEL = 0.95
SHUFFLE_DELTA = 1e-6
_CLAIM = ("model", "claim_notion", "claim_delta", "claim_unit", "claim_conditions")


@dataclass(frozen=True)
class Curve:
    """Mean error of one release with 95 % intervals.

    Attributes
    ----------
    release, model : str
    x : (k,) array, rising
    mean, lower, upper : (k,) arrays
        Bounds of a t interval over the runs at each x, within what the metric can be; NaN where
        there is one run only, or where a run has no value.
    runs : (k,) array of int
    delta : (k,) array
        Of the claims at each x, in the same reading as it.
    """

    release: str
    model: str
    x: Array
    mean: Array
    lower: Array
    upper: Array
    runs: NDArray[np.int64]
    delta: Array


def setting_of(against: Against) -> Literal["epsilon", "users", "cells"]:
    """Return the column that a curve runs over: "epsilon" for every reading of epsilon."""
    if against == "users" or against == "cells":  # noqa: PLR1714 - mypy narrows this form only
        return against
    return "epsilon"


def error_curve(
    table: pa.Table,
    release: str,
    metric: str,
    against: Against = "epsilon",
    shuffle_delta: float = SHUFFLE_DELTA,
) -> Curve:
    """Return the error curve of a release, without runs whose delta is 1: these promise nothing.

    Parameters
    ----------
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it.
    release : str
        Label in the column ``release``.
    metric : name in METRICS
    against : {"epsilon", "replacement_epsilon", "shuffled_epsilon", "users", "cells"}
        Each other setting must have one value: a mean over different epsilons means nothing.
        "shuffled_epsilon" takes local reports as if a shuffler that all trust had mixed them
        (:mod:`ldpspatial.privacy.shuffling`), where its bound covers them: epsilon-LDP, one report
        a user, all by one mechanism. Other claims are taken under replacement.
    shuffle_delta : float in (0, 1)
        Delta of the shuffled claim.

    Raises
    ------
    InputError
        No such runs, an unknown name, runs that differ in more than ``against``, claims of more
        than one kind, or none that promises anything.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> rng = np.random.default_rng(1)
    >>> people = rng.normal(4, 1, (500, 2))
    >>> plane = Grid.plane(0, 0, 8, 4)
    >>> table = compare(people, plane, [1, 4], ["dam"], 3, rng, metrics=["l1"])
    >>> curve = error_curve(table, "dam", "l1")
    >>> curve.x.tolist(), curve.runs.tolist(), bool((curve.lower < curve.mean).all())
    ([1.0, 4.0], [3, 3], True)
    """
    one_of("metric", metric, METRICS)
    one_of("against", against, AXES)
    instance("table", table, pa.Table)
    instance("release", release, str)
    shuffle_delta = number_in("shuffle_delta", shuffle_delta, "(0, 1)")
    rows = table.filter(pc.equal(table["release"], release))
    if rows.num_rows == 0:
        raise InputError(f"release must be in the table, got {release!r}")
    if rows[metric].null_count == rows.num_rows:
        raise InputError(f"metric {metric} was not measured for {release!r}")
    setting = setting_of(against)
    held = ("data", "sigma", "truth", "blocks", "epsilon", "users", "cells", "parameters")
    for column in (name for name in held if name in rows.column_names):
        values = pc.unique(rows[column]).to_pylist()
        if column != setting and len(values) > 1:
            raise InputError(
                f"{column} must have one value along a curve over {against}, got {values}"
            )
    kept = promising(rows, against)
    if kept.num_rows == 0:
        raise InputError(
            f"release must promise something, but over {against} each delta of {release!r} is 1"
        )
    rows = kept
    kinds = sorted(set(promises(rows, against)))
    if len(kinds) > 1:
        raise InputError(
            f"release must promise one kind of thing along a curve over {against}, got {kinds} "
            f"of {release!r}"
        )
    at = rows[setting].to_numpy()
    errors = rows[metric].to_numpy()
    places = np.unique(at)
    groups = [errors[at == place] for place in places]
    centre, half = np.transpose([mean_and_half_width(group) for group in groups])
    low, high = METRICS[metric].range
    centre = np.clip(centre, low, high)  # rounding may leave it by 1e-14
    return Curve(
        release,
        rows["model"][0].as_py(),
        _shown(rows, places, against, shuffle_delta),
        centre,
        np.clip(centre - half, low, high),
        np.clip(centre + half, low, high),
        np.array([len(group) for group in groups]),
        _deltas(rows, places, against, shuffle_delta),
    )


def plot_error_curves(
    table: pa.Table,
    metric: str = "w2",
    against: Against = "replacement_epsilon",
    title: str | None = None,
    releases: Sequence[str] | None = None,
    shuffle_delta: float = SHUFFLE_DELTA,
    mixed: bool = False,
) -> "Figure":
    """Draw the error of every release, one line each, coloured by trust model.

    Parameters
    ----------
    table, metric, shuffle_delta
        As in :func:`error_curve`.
    against : {"replacement_epsilon", "epsilon", "shuffled_epsilon", "users", "cells"}
        As there; by default the epsilon of one relation.
    title : str, optional
    releases : labels, optional
        Which to draw; all by default.
    mixed : bool
        Draw promises of several kinds into one figure, and name that of each curve.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with :func:`ldpspatial.plotting.heat_map.save_figure`.

    Raises
    ------
    InputError
        As in :func:`error_curve`; or releases promise things that cannot be compared.
    """
    # Here: each process of a comparison loads this module, and most draw nothing.
    from ldpspatial.plotting.error_curves import curves_figure  # noqa: PLC0415

    if title is not None:
        instance("title", title, str)
    curves = _curves(table, metric, against, releases, shuffle_delta, mixed)
    labels = _labels(table, metric, against, shuffle_delta)
    return curves_figure(curves, labels, not METRICS[metric].grows, title)


def draw_error_curves(
    axes: "Axes",
    table: pa.Table,
    metric: str,
    against: Against,
    releases: Sequence[str] | None = None,
    shuffle_delta: float = SHUFFLE_DELTA,
    mixed: bool = False,
) -> None:
    """Draw the same into axes of a larger figure."""
    from ldpspatial.plotting.error_curves import draw_curves  # noqa: PLC0415

    curves = _curves(table, metric, against, releases, shuffle_delta, mixed)
    labels = _labels(table, metric, against, shuffle_delta)
    draw_curves(axes, curves, labels, not METRICS[metric].grows)


def _curves(
    table: pa.Table,
    metric: str,
    against: Against,
    releases: Sequence[str] | None,
    shuffle_delta: float,
    mixed: bool = False,
) -> list[Curve]:
    instance("table", table, pa.Table)
    if releases is not None and (isinstance(releases, str) or not isinstance(releases, Iterable)):
        raise InputError(f"releases must be labels, got {shown(releases)}")
    instance("mixed", mixed, bool)
    one_of("against", against, AXES)
    names = list(releases or pc.unique(table["release"]).to_pylist())
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"releases must be labels, got {shown(names)}")
    kinds = by_promise(table, against, names)
    if len(kinds) > 1 and not mixed:
        raise InputError(_refusal(kinds, table, names, against))
    marks = _marks(kinds) if len(kinds) > 1 else {}
    curves = []
    for name in names:
        rows = table.filter(pc.equal(table["release"], name))
        # Of several kinds where its claim changes; of none where error_curve says why.
        for kind, some in (by_promise(rows, against) or {NOTHING: table}).items():
            curve = error_curve(some, name, metric, against, shuffle_delta)
            curves.append(replace(curve, release=told(curve) + marks.get(kind, "")))
    return curves


def told(curve: Curve) -> str:
    """Return the name of a release, with its delta where it has one, by its claim or shuffled."""
    low, high = curve.delta.min(), curve.delta.max()
    if not high > 0:
        return curve.release
    return f"{curve.release} (delta {low:.2g}{f' to {high:.2g}' if high > low else ''})"


def _refusal(
    kinds: Mapping[str, pa.Table], table: pa.Table, names: Sequence[str], against: Against
) -> str:
    """Say which promises differ, and what can be drawn of them."""
    held = {kind: set(rows["release"].to_pylist()) for kind, rows in kinds.items()}
    each = (f"{kind}: {', '.join(n for n in names if n in some)}" for kind, some in held.items())
    return (
        f"releases must promise one kind of thing in a figure over {against}, got "
        f"{'; '.join(each)}. {_instead(kinds, table, names, against)}, or ask for a mixed figure, "
        "which marks each curve (mixed=True, --mixed on the command line)"
    )


def _marks(kinds: Iterable[str]) -> dict[str, str]:
    """Return what tells kinds of promises apart: the relation alone, where that is all."""
    cut = {kind: kind.rpartition(", ") for kind in kinds}
    alone = len({head for head, _, _ in cut.values()}) == 1
    return {kind: f" ({last})" if alone else f"\n({kind})" for kind, (_, _, last) in cut.items()}


def _instead(kinds: Iterable[str], table: pa.Table, names: Sequence[str], against: Against) -> str:
    """Say what can be drawn of promises that differ."""
    if (
        len(by_promise(table, "replacement_epsilon", names)) == 1
        and setting_of(against) == "epsilon"
    ):
        return "Draw them over replacement_epsilon, the epsilon of one relation for all"
    if any("geo-indistinguishability" in kind for kind in kinds):
        return (
            "Name those of one kind, run one at the local privacy of another "
            "(ldpspatial.release.local.Matched)"
        )
    return "Name those of one kind"


def _labels(
    table: pa.Table, metric: str, against: Against, shuffle_delta: float
) -> tuple[str, str]:
    """Return what the axes show, filter and blocks included."""
    across = AXES[against]
    if against == "shuffled_epsilon":
        across += f" (delta {shuffle_delta:g})"
    measured = METRICS[metric].label
    blocks = table["blocks"][0].as_py()
    sigma = table["sigma"][0].as_py()
    if METRICS[metric].moves and blocks is not None:
        measured += f",\nbetween {blocks} x {blocks} blocks"
    if sigma:
        measured += f",\nGaussian filter of {sigma:g} cells"
    return across, measured


def _shown(rows: pa.Table, places: Array, against: Against, shuffle_delta: float) -> Array:
    """Return the x of each place: itself, or what its claim comes to in another reading."""
    if against == setting_of(against):
        return np.asarray(places, dtype=np.float64)
    at = rows["epsilon"].to_numpy()
    replaced = rows["replacement_epsilon"].to_numpy()
    shown = np.array([replaced[at == place].mean() for place in places])
    if against == "shuffled_epsilon" and _can_be_shuffled(rows):
        users = rows["users"][0].as_py()
        shown = np.array([amplified_epsilon(x, users, shuffle_delta) for x in shown])
    return shown


def _deltas(rows: pa.Table, places: Array, against: Against, shuffle_delta: float) -> Array:
    if against == "shuffled_epsilon" and _can_be_shuffled(rows):
        return np.full(len(places), shuffle_delta)
    at = rows[setting_of(against)].to_numpy()
    deltas = rows[delta_column(against)].to_numpy()
    return np.array([deltas[at == place].max() for place in places])


def _can_be_shuffled(rows: pa.Table) -> bool:
    """Tell whether the bound on shuffled reports covers all of these claims.

    It needs pure epsilon-LDP. A loss that grows with distance has no bound over the map that it
    could amplify, and reports that depend on other reports are no batch of equal ones.
    """
    return all(
        row["model"] == "local"
        and row["claim_notion"] == "differential privacy"
        and row["claim_delta"] == 0
        and row["claim_unit"] == "user"
        and ONE_MECHANISM in row["claim_conditions"]
        for row in rows.select(_CLAIM).to_pylist()
    )


def mean_and_half_width(values: Array) -> tuple[float, float]:
    """Return a mean and half of its 95 % interval by Student's t; NaN of a single value."""
    if len(values) < 2:
        return float(values.mean()), np.nan
    # Runs of a setting are independent, each with a seed of its own: a t interval for their mean.
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(error * stdtrit(len(values) - 1, (1 + LEVEL) / 2))
