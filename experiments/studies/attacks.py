"""What an observer of one report is left in doubt of, beside what is promised and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass

import click
import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.generated import generated, write_page
from experiments.means import mean_and_half_width
from experiments.pairs import errors_of
from experiments.progress import tracked
from experiments.synthetic import Conduct, on_synthetic_maps
from experiments.tables import DOCS, markdown
from ldpspatial.plotting.heat_map import save_figure
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local import DamTrajectory, Disk, LdpTrace, LocalRelease, SubsetSelection
from ldpspatial.release.local.disks.dam import PAPER_DISKS
from ldpspatial.release.registry import releases

CELLS = 15
EPSILONS = (0.7, 1.4, 3.5, 5.0, 7.0)
SEM_RATES = (0.4, 0.6, 0.8, 1.2, 1.5)  # epsilon per cell, over the local privacies of the others
PLANAR_RATES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.2)
BLIND = float(cell_distances((CELLS, CELLS)).mean())  # a guess from the uniform prior
TICKS = (0.2, 0.3, 0.5, 1, 2, 4)
MAPS = {"normal": "Normal", "szipf": "SZipf"}
LDP = "eps-LDP, per user"
GEO = "geo-indistinguishability,\nepsilon per cell, per user"

LOCAL = {name: each for name, each in releases().items() if isinstance(each, LocalRelease)}
SINGLE: Mapping[str, LocalRelease] = {
    **{f"{kind.name}, em": LOCAL[kind.name] for kind in PAPER_DISKS},
    "disk, em": Disk(rule="scaled"),  # its own estimator is measured elsewhere, and takes longer
    "rhombus, em": LOCAL["rhombus"],
    "k-rr, em": LOCAL["k-rr"],
    "oue, projection": LOCAL["oue"],
    "olh, projection": LOCAL["olh"],
    "subset-selection, projection": SubsetSelection(estimator="projection"),
    "difference-sets, projection": LOCAL["difference-sets"],
    "mdsw, ems": LOCAL["mdsw"],
    "mdsw-joint, em": LOCAL["mdsw-joint"],
    "hio, consistency": LOCAL["hio"],
    "hdg, weighted update": LOCAL["hdg"],
    "ahead, consistency": LOCAL["ahead"],
}
TRAILS: Mapping[str, LocalRelease] = {
    "dam-trajectory": LOCAL["dam-trajectory"],
    "dam-trajectory, 4 slots": DamTrajectory(slots=4),
    "dam-points": LOCAL["dam-points"],
    "ldptrace": LOCAL["ldptrace"],
    "ldptrace, all slots": LdpTrace("all"),
    "pivottrace": LOCAL["pivottrace"],
}


@dataclass(frozen=True)
class Geo:
    """A release under geo-indistinguishability with epsilons of its own."""

    release: LocalRelease
    rates: tuple[float, ...]


GEOS: Mapping[str, Geo] = {
    "sem-geo-i, inverse": Geo(LOCAL["sem-geo-i"], SEM_RATES),
    "planar-laplace, em": Geo(LOCAL["planar-laplace"], PLANAR_RATES),
}


@dataclass(frozen=True)
class Point:
    """One release at one epsilon: local privacy and the runs' errors by map, all in cells."""

    label: str
    geo: bool
    epsilon: float
    privacy: float
    errors: Mapping[str, np.ndarray]


@on_synthetic_maps("attacks")
def attacks(conduct: Conduct) -> None:
    """Local privacy of every local release beside its claim, and its error at that privacy."""
    tables = {name: _played(conduct, name) for name in tracked(MAPS, "maps")}
    points = [
        _point(label, release, epsilon, tables)
        for label, release in SINGLE.items()
        for epsilon in EPSILONS
    ]
    points += [
        _point(label, geo.release, rate, tables)
        for label, geo in GEOS.items()
        for rate in geo.rates
    ]
    parts = (
        "## Local privacy beside the claim",
        _promised(points),
        _promised_of_distance(points),
        "## Local privacy and error",
        _errors(points),
    )
    text = "\n\n".join(parts)
    figure = draw(points)
    click.echo(text)
    save_figure(figure, conduct.out / "attacks.png")
    if conduct.write:
        save_figure(figure, generated(DOCS, "attacks.png"), dpi=90)
        write_page(DOCS, "attacks", text)


def _played(conduct: Conduct, name: str) -> pa.Table:
    parts = [conduct.play(name, CELLS, SINGLE, EPSILONS)]
    parts += [
        conduct.play(name, CELLS, {label: geo.release}, geo.rates) for label, geo in GEOS.items()
    ]
    return pa.concat_tables(parts)


def _point(
    label: str, release: LocalRelease, epsilon: float, tables: Mapping[str, pa.Table]
) -> Point:
    geo = release.claim(epsilon).notion != "differential privacy"
    errors = {
        name: errors_of(table, label, "w2", epsilon=epsilon) for name, table in tables.items()
    }
    return Point(label, geo, epsilon, release.local_privacy(CELLS, epsilon), errors)


def _promised(points: list[Point]) -> str:
    """Return the local privacies under eps-LDP, at the same epsilons."""
    rows = [
        [label, "eps-LDP, per user", "one report",
         *(f"{p.privacy:.2f}" for p in points if p.label == label)]
        for label in SINGLE
    ]  # fmt: skip
    for label, release in TRAILS.items():
        unit = release.claim(1.0).unit
        told = [f"{release.local_privacy(CELLS, epsilon):.2f}" for epsilon in EPSILONS]
        rows.append([label, f"eps-LDP, per {unit}", "one of the reports", *told])
    head = ["release, estimator", "claim", "seen"]
    return markdown([*head, *(f"eps {e:g}" for e in EPSILONS)], rows)


def _promised_of_distance(points: list[Point]) -> str:
    """Return the local privacies under geo-indistinguishability, each at epsilons of its own."""
    rows = [
        [p.label, "geo-indistinguishability per cell, per user, NOT eps-LDP",
         f"{p.epsilon:g} per cell", f"{p.privacy:.2f}"]
        for p in points if p.geo
    ]  # fmt: skip
    return markdown(["release, estimator", "claim", "epsilon", "local privacy"], rows)


def _errors(points: list[Point]) -> str:
    rows = [
        [p.label, "geo-ind." if p.geo else "eps-LDP",
         f"{p.epsilon:g}" + (" per cell" if p.geo else ""), f"{p.privacy:.2f}",
         *(_with_interval(p.errors[name]) for name in MAPS)]
        for p in points
    ]  # fmt: skip
    head = ["release, estimator", "notion", "epsilon", "local privacy"]
    return markdown([*head, *(f"W2, {title}" for title in MAPS.values())], rows)


def _with_interval(values: np.ndarray) -> str:
    """Return the mean with the half-width of its 95 % interval."""
    mean, half = mean_and_half_width(values)
    return f"{mean:.3f} ± {half:.3f}" if np.isfinite(half) else f"{mean:.3f}"


def draw(points: list[Point]) -> Figure:
    """Draw error over local privacy, a panel a map; hollow and dashed is another notion."""
    figure = Figure(figsize=(11.5, 5.6), layout="constrained")
    panels = figure.subplots(1, len(MAPS), sharex=True)
    for axes, (name, title) in zip(panels, MAPS.items(), strict=True):
        lines = _draw_panel(axes, points, name)
        axes.axvline(BLIND, color="grey", linestyle=":")
        axes.set(title=title, xlabel=f"local privacy (cells); {BLIND:.2f} without any report")
        axes.set_yscale("log")
        axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("exact W2 of the map (cells)")
    handles: list[Artist] = []
    for notion, geo in ((LDP, False), (GEO, True)):
        handles.append(Line2D([], [], linestyle="none", label=notion))
        handles += [line for label, line in lines.items() if (label in GEOS) == geo]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    figure.supxlabel(
        "Local privacy is not a promise: it is a mean, for one prior. What is promised is in the "
        "legend; the two notions cannot be compared.", fontsize=9,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Axes, points: list[Point], name: str) -> dict[str, Line2D]:
    """Draw one line a release; return them by label."""
    shades = iter(colormaps["tab20"].colors)  # type: ignore[attr-defined]
    marks = iter("osvP^XD*<>ph8dH")
    hollow = dict(zip(GEOS, ("D", "s"), strict=True))
    lines = {}
    for label in (*SINGLE, *GEOS):
        found = [p for p in points if p.label == label]
        x = [p.privacy for p in found]
        y = [p.errors[name].mean() for p in found]
        if label in GEOS:
            (line,) = axes.plot(x, y, color="black", linestyle="--", marker=hollow[label],
                                markerfacecolor="white", markersize=7, label=label)  # fmt: skip
        else:
            (line,) = axes.plot(x, y, color=next(shades), marker=next(marks), markersize=5,
                                linewidth=1, label=label)  # fmt: skip
        lines[label] = line
    return lines
