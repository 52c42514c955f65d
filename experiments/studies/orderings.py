"""Which of two local mechanisms is nearer to the truth: what is expected, and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import exp, inf, isnan, nan, sqrt

import click
import numpy as np
import pyarrow as pa
from scipy import stats

from experiments.generated import write_page
from experiments.pairs import errors_of
from experiments.progress import tracked
from experiments.synthetic import Conduct, on_synthetic_maps
from experiments.tables import DOCS, markdown
from ldpspatial.release.local import Dam, Huem, KRr, Matched, Mdsw, MdswJoint, Recommended, SemGeoI
from ldpspatial.release.release import Release

LEVEL = 0.95
TWICE = 0.5  # of the other's error: "by more than a factor of two"
NEAR = (0.8, 1.25)  # a ratio in between is level
MAPS = ("normal", "mnormal", "szipf")
DAM = "dam, em"
RECOMMENDED = "recommended, field"
HUEM = "huem, em"
KRR = "k-rr, em"
PLAIN = "mdsw, em"
SMOOTH = "mdsw, ems"
JOINT = "mdsw-joint, em"
SEM = "sem-geo-i matched to dam, inverse"
PROJECTED = "k-rr, projection"
PUBLISHED = "dam, em (published stop)"
PAPER = "DAM paper"
TIED = "coordinates that go together"
MARGINS = "independent coordinates"
ONE_CELL = "a disk of one cell"
NO_DISK = "b = 0: both are k-RR"

Key = tuple[str, int, float]  # map, cells, epsilon


@dataclass(frozen=True)
class Ordering:
    """An expectation of the ratio of two errors.

    Attributes
    ----------
    name, cells, epsilon
        Map, cells along a side, and epsilon of DAM.
    first, second : str
        Labels: mechanism and estimator.
    least, most : float
        Where the error of the first over that of the second is expected.
    source : str
        Who expects it, or why.
    """

    name: str
    cells: int
    epsilon: float
    first: str
    second: str
    least: float = 0.0
    most: float = 1.0
    source: str = PAPER

    @property
    def key(self) -> Key:
        """What both run on."""
        return self.name, self.cells, self.epsilon

    @property
    def expectation(self) -> str:
        """The expected range in words."""
        if (self.least, self.most) == (0.0, inf):
            return "none"
        span = f"below {self.most:g}" if not self.least else f"{self.least:g} to {self.most:g}"
        return f"{span} ({self.source})"


def orderings_expected() -> tuple[Ordering, ...]:
    """Return all expectations: of the paper, of the theory, and rows without one."""
    blurred = MAPS[:2]
    both = (5, 15)
    found = [Ordering(name, d, 3.5, DAM, SMOOTH, most=TWICE, source=TIED)
             for name, d in product(blurred, both)]  # fmt: skip
    found += [Ordering(name, d, 3.5, DAM, PLAIN) for name, d in product(blurred, both)]
    found += [Ordering("szipf", d, 3.5, DAM, other) for d, other in product(both, (SMOOTH, PLAIN))]
    found += [Ordering("szipf", 15, 3.5, other, DAM, source=MARGINS) for other in (SMOOTH, PLAIN)]
    found += [Ordering(name, 5, 3.5, KRR, DAM, *NEAR, source=ONE_CELL) for name in MAPS]
    found += [Ordering(name, d, 3.5, HUEM, SMOOTH) for name, d in product(MAPS, both)]
    found += [Ordering(name, 15, epsilon, DAM, HUEM) for name, epsilon in product(MAPS, (1.4, 3.5))]
    found += [Ordering(name, 15, epsilon, DAM, SEM) for name, epsilon in product(MAPS, (5.0, 7.0))]
    found += [Ordering(name, 5, 0.7, SEM, DAM) for name in MAPS]
    found += [Ordering(name, 15, 7.0, PROJECTED, PUBLISHED, source=NO_DISK)
              for name in MAPS]  # fmt: skip
    found += [Ordering(name, 15, 3.5, DAM, JOINT, most=inf) for name in MAPS]
    found += [Ordering(name, 15, 3.5, RECOMMENDED, DAM, most=inf) for name in MAPS]
    return tuple(found)


@dataclass(frozen=True)
class Reference:
    """W2 in cells from another implementation of the same definitions.

    Of 5 seeds and REFERENCE_USERS people at epsilon 3.5.
    """

    name: str
    cells: int
    label: str
    mean: float
    error: float = nan


REFERENCE_USERS = 100_000
LIKELIHOOD = "(likelihood stop)"
REFERENCES = (
    Reference("normal", 15, f"dam, em {LIKELIHOOD}", 0.362, 0.017),
    Reference("normal", 15, PUBLISHED, 0.409, 0.026),
    Reference("normal", 15, f"mdsw, em {LIKELIHOOD}", 0.767, 0.005),
    Reference("normal", 15, f"mdsw, ems {LIKELIHOOD}", 1.131, 0.001),
    Reference("normal", 15, f"k-rr, em {LIKELIHOOD}", 0.927, 0.032),
    Reference("normal", 5, f"dam, em {LIKELIHOOD}", 0.121, 0.003),
    Reference("normal", 5, PUBLISHED, 0.115, 0.004),
    Reference("normal", 5, f"mdsw, em {LIKELIHOOD}", 0.396, 0.002),
    Reference("normal", 5, f"mdsw, ems {LIKELIHOOD}", 0.882, 0.001),
    Reference("normal", 5, f"k-rr, em {LIKELIHOOD}", 0.120, 0.007),
    Reference("szipf", 15, f"dam, em {LIKELIHOOD}", 0.519, 0.003),
    Reference("szipf", 15, PUBLISHED, 0.608, 0.023),
    Reference("szipf", 15, f"mdsw, em {LIKELIHOOD}", 0.222, 0.010),
    Reference("szipf", 15, f"mdsw, ems {LIKELIHOOD}", 0.253, 0.019),
    Reference("szipf", 15, f"k-rr, em {LIKELIHOOD}", 0.546, 0.016),
    Reference("mnormal", 15, f"dam, em {LIKELIHOOD}", 0.388),
    Reference("mnormal", 15, f"mdsw, em {LIKELIHOOD}", 0.563),
    Reference("mnormal", 15, f"mdsw, ems {LIKELIHOOD}", 0.907),
)


@on_synthetic_maps("orderings")
def orderings(conduct: Conduct) -> None:
    """Ratios of the errors of local mechanisms beside what is expected, and reference values."""
    expected = orderings_expected()
    labels: dict[Key, dict[str, None]] = {}
    for each in expected:
        labels.setdefault(each.key, {}).update({each.first: None, each.second: None})
    for known in REFERENCES:
        labels.setdefault((known.name, known.cells, 3.5), {})[known.label] = None
    tables = {
        (name, cells, epsilon): conduct.play(
            name, cells, {label: _release(label, cells) for label in wanted}, [epsilon]
        )
        for (name, cells, epsilon), wanted in tracked(labels.items(), "settings")
    }
    parts = (
        "## Pairs",
        markdown(
            ["map", "d", "eps", "A", "B", "W2 of A", "W2 of B", "A / B", "expected", "verdict"],
            [_ordering_row(each, tables[each.key]) for each in expected],
        ),
        "## Reference values",
        reference_table(tables, conduct.users),
    )
    text = "\n\n".join(parts)
    click.echo(text)
    if conduct.write:
        write_page(DOCS, "orderings", text)


def _release(label: str, cells: int) -> Release:
    known: dict[str, Release] = {
        DAM: Dam(),
        RECOMMENDED: Recommended(),
        HUEM: Huem(),
        KRR: KRr(),
        PLAIN: Mdsw(smoothing=False),
        SMOOTH: Mdsw(fine=False),
        JOINT: MdswJoint(),
        SEM: Matched(SemGeoI(), Dam(), cells),
        PROJECTED: KRr(estimator="projection"),
        PUBLISHED: Dam(rule="published"),
        f"dam, em {LIKELIHOOD}": Dam(rule="likelihood"),
        f"k-rr, em {LIKELIHOOD}": KRr(rule="likelihood"),
        f"mdsw, em {LIKELIHOOD}": Mdsw(smoothing=False, rule="likelihood"),
        f"mdsw, ems {LIKELIHOOD}": Mdsw(rule="likelihood", fine=False),
    }
    return known[label]


def ratio_interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios of paired errors, with a 95 % t interval.

    The interval is that of the mean log-ratio; from one pair it reaches from 0 to infinity.
    """
    logs = np.log(first) - np.log(second)
    if len(logs) < 2:
        return exp(logs.mean()), 0.0, inf
    half = stats.t.ppf((1 + LEVEL) / 2, len(logs) - 1) * logs.std(ddof=1) / sqrt(len(logs))
    return tuple(exp(logs.mean() + side) for side in (0.0, -half, half))  # type: ignore[return-value]


def verdict(low: float, high: float, least: float, most: float) -> str:
    """Return whether a ratio whose interval is [low, high] lies in (least, most)."""
    if (least, most) == (0.0, inf):
        return "A nearer" if high < 1 else "B nearer" if low > 1 else "open"
    if least < low and high < most:
        return "holds"
    return "does not hold" if high <= least or low >= most else "open"


def _titled(label: str) -> str:
    """Return a label with its notion where that is not eps-LDP; runs are kept by the bare label."""
    return f"{label} (geo-indistinguishability)" if label == SEM else label


def _ordering_row(each: Ordering, table: pa.Table) -> list[str]:
    first, second = (errors_of(table, label, "w2") for label in (each.first, each.second))
    ratio, low, high = ratio_interval(first, second)
    return [
        each.name, str(each.cells), f"{each.epsilon:g}", _titled(each.first), _titled(each.second),
        f"{first.mean():.3f}", f"{second.mean():.3f}", f"{ratio:.2f} ({low:.2f} to {high:.2f})",
        each.expectation, verdict(low, high, each.least, each.most),
    ]  # fmt: skip


def reference_table(tables: Mapping[Key, pa.Table], users: int) -> str:
    """Return the references beside the runs; how far apart, where as many people are asked."""
    rows = [_reference_row(known, tables[known.name, known.cells, 3.5]) for known in REFERENCES]
    header = ["map", "d", "mechanism, estimator", "reference", "here", "standard errors apart"]
    if users == REFERENCE_USERS:
        return markdown(header, rows)
    header[3:] = [f"reference, {REFERENCE_USERS:,} people", f"here, {users:,} people"]
    return markdown(header, [row[:-1] for row in rows])


def _reference_row(known: Reference, table: pa.Table) -> list[str]:
    found = errors_of(table, known.label, "w2")
    error = found.std(ddof=1) / sqrt(len(found)) if len(found) > 1 else nan
    apart = (found.mean() - known.mean) / sqrt(error**2 + known.error**2)
    return [
        known.name, str(known.cells), known.label, _with_error(known.mean, known.error),
        _with_error(found.mean(), error), f"{apart:+.1f}" if not isnan(apart) else "",
    ]  # fmt: skip


def _with_error(mean: float, error: float) -> str:
    """Return "mean (standard error)", without the latter where it is not known."""
    return f"{mean:.3f}" if isnan(error) else f"{mean:.3f} ({error:.3f})"
