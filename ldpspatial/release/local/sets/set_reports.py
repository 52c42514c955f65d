"""Reports that are sets of cells: what OUE, OLH, subset selection and k-RR have in common.

In each of them, a report S is e^eps times as probable under a cell in S as under a cell outside,
e^eps the ratio of two whole weights (:mod:`ldpspatial.privacy.whole_draws`):

- k-RR: S is the reported cell; it is kept with probability e^eps / (e^eps + m - 1).
- Subset selection: S is the subset; of its size, those that hold a cell share
  k e^eps / (k e^eps + m - k), those that do not share the rest.
- OUE: S are the bits that are 1. A bit of the cell itself has odds 1, others odds e^-eps.
- OLH: S are the cells that the function sends to the reported hash, k-RR among hashes.

So the likelihood of a density f is proportional to 1 + (e^eps - 1) f(S), and EM, projection and
local privacy are written once.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from math import exp
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import on_density, on_ratio
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.whole_draws import TwoWeights
from ldpspatial.release.local.local_release import (
    LocalRelease,
    check_rule,
    estimator_name,
    square_side,
)
from ldpspatial.release.local.sets.set_sums import add_to_sets, sum_over_sets
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import (
    MAX_EPSILON,
    number_array,
    number_in,
    one_of,
    shown,
    whole_array,
    whole_number,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator
Cells = NDArray[np.unsignedinteger]
SetEstimator = Literal["projection", "em"]

LEAST_EPSILON = 1e-12  # a part of somebody's budget may be small; below it floats lose the map
MOST_ENTRIES = 1 << 28  # cells in all reports together; 1 GiB at most


@dataclass(frozen=True, eq=False, repr=False)
class SetReports:
    """One set of values a user.

    Attributes
    ----------
    starts : (n + 1,) int64 array
        Report i holds ``cells[starts[i]:starts[i + 1]]``, which may be nothing.
    cells : array of unsigned integers in [0, size)
        The values of each report, each once, in an order that says nothing. Of the shortest type
        that holds them: EM takes half the time.
    size : int
        Number of values that there are.
    weights : TwoWeights
        Of a report under a value that it holds and under another: its privacy loss is their ratio.
    lift : float > 0
        p - q: by how much a set holds the user's own value more probably than another given one.
        Without meaning where there is only one value.
    """

    starts: Ints = field(repr=False)
    cells: Cells = field(repr=False)
    size: int
    weights: TwoWeights
    lift: float

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, at most what was asked for."""
        return self.weights.loss

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"SetReports({len(self)} sets of {self.size} values, epsilon {self.epsilon:g})"


class SetChannel:
    """The channel of set reports, cut to the reports that came.

    All possible reports are too many to list. EM needs the rows of those that came only, each up
    to a factor: here the report's probability under a cell outside of it, which may be too small
    for a float. So log-likelihoods are the mechanism's less a constant, whatever the density.

    Parameters
    ----------
    reports : SetReports
    input_shape : (rows, columns)
    """

    conditional: ClassVar[bool] = True  # its outputs are the reports that came, not all there are

    def __init__(self, reports: SetReports, input_shape: tuple[int, int]):
        if input_shape[0] * input_shape[1] != reports.size:
            raise InputError(f"input_shape must hold {reports.size} cells, got {input_shape}")
        self.reports = reports
        self.input_shape = (int(input_shape[0]), int(input_shape[1]))
        self.epsilon = reports.epsilon

    @property
    def support(self) -> NDArray[np.bool_]:
        """(n,) mask, all True: an output is a report."""
        return np.ones(len(self.reports), bool)

    @on_density
    def forward(self, density: Array) -> Array:
        """Return sum f + (e^eps - 1) f(S) for each of the n reports S."""
        flat = density.ravel()
        inside = sum_over_sets(self.reports.starts, self.reports.cells, flat)
        return np.asarray(flat.sum() + self.reports.weights.gain * inside)

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return the transpose of :meth:`forward` on an (n,) array, shaped like a density."""
        held = add_to_sets(self.reports.starts, self.reports.cells, ratio, self.reports.size)
        gain = self.reports.weights.gain
        return np.asarray(ratio.sum() + gain * held).reshape(self.input_shape)

    @property
    def score_step(self) -> float:
        """By how much a score is higher where a set holds one more cell of a region."""
        return 1 / self.reports.lift

    def scores(self, weights: Array) -> Array:
        """Return (n,) array: of each report S alone, an unbiased share of a region.

        Sets hold w in the mean q sum w + (p - q) w.f for weights w, so (w(S) - q sum w) / (p - q)
        is unbiased. It is taken of w less its mean c, which is added afterwards: sum f = 1. The
        size of S then tells nothing; where that is random, scores of large regions vary less.
        """
        flat = number_array("weights", weights, self.input_shape).ravel()
        mean = flat.mean()
        inside = sum_over_sets(self.reports.starts, self.reports.cells, flat - mean)
        return np.asarray(mean + self.score_step * inside)


@dataclass(frozen=True)
class SetRelease(LocalRelease):
    """A mechanism of set reports with its estimator.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    estimator: SetEstimator = "projection"
    rule: str = "scaled"

    def __post_init__(self) -> None:
        check_rule(self.rule)
        check_estimator(self.estimator, self.rule, SetRelease.rule)

    @abstractmethod
    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return what is computed from epsilon and the number of cells, as facts."""

    @abstractmethod
    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return the whole weights of a report under a cell that it holds and under another."""

    @abstractmethod
    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the size of a set, the same for every cell; shape (size + 1,)."""

    @abstractmethod
    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw the reports of users who hold these values in [0, size)."""

    @abstractmethod
    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw reports and return unbiased shares of the values, without holding the reports."""

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: no report is more than e^epsilon times likelier under another cell."""
        check_loss(epsilon)
        return super().claim(epsilon)

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells."""
        return cells_privacy(cells, epsilon, self.set_sizes(cells**2, epsilon))

    def _release(self, users: UserCells, epsilon: float, rng: Rng) -> Released:
        """Draw one report a user and estimate the density."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        size = side * side
        facts: dict[str, Fact] = {
            "estimator": self.estimator,
            "realised_epsilon": self.weights(size, epsilon).loss,
            **self.design(size, epsilon),
        }
        if self.estimator == "projection":
            values = users.one_cell_each(rng)
            density = on_simplex(self.frequencies(values, size, epsilon, rng))
            return Released(density.reshape(users.shape), claim, facts)
        entries = len(users) * float(self.set_sizes(size, epsilon) @ np.arange(size + 1))
        if entries > MOST_ENTRIES:
            raise InputError(
                f"reports must hold at most {MOST_ENTRIES} cells in all for estimator 'em', got "
                f'about {entries:.3g}: use estimator="projection"'
            )
        reports = self.reports(users.one_cell_each(rng), size, epsilon, rng)
        found = estimate(SetChannel(reports, users.shape), np.ones(len(reports)), self.rule)
        facts |= {"estimator": estimator_name(found), "iterations": found.iterations}
        return Released(found.density, claim, facts, found)


def cells_privacy(side: int, epsilon: float, sizes: Array) -> float:
    """Return local privacy of set reports, in cells: the mean distance between a cell and a guess.

    Given a set of s of the m cells, the posterior under a uniform prior weighs cells inside by
    e^eps and those outside by 1. All sets of a size are alike, so two guesses from it (the truth
    is one) are the same cell with probability c = (s e^(2 eps) + m - s) / (s e^eps + m - s)^2,
    and else a uniform pair of distinct ones. Local privacy is the mean over s of 1 - c times the
    mean distance of such a pair. Pairs of cells are counted by their offset: no m x m array.

    Parameters
    ----------
    side : int
        Of the map.
    epsilon : float > 0
    sizes : (m + 1,) array
        Probability of each size of a set under a uniform prior; given the size, every set must be
        equally probable.

    Raises
    ------
    InputError
        A bad epsilon.

    Examples
    --------
    >>> round(cells_privacy(2, np.log(3), np.array([0, 1.0, 0, 0, 0])), 6)
    0.758714
    """
    check_loss(epsilon)
    offsets = np.arange(side)
    pairs = (side - offsets) * np.where(offsets > 0, 2.0, 1.0)  # ordered, along one axis
    total = float(pairs @ np.hypot(offsets[:, None], offsets) @ pairs)
    m = side**2
    inside, low = np.arange(m + 1), exp(-epsilon)  # weights relative to those inside
    weight = inside + (m - inside) * low
    same = float(sizes @ ((inside + (m - inside) * low**2) / weight**2))
    return (float(np.sum(sizes)) - same) * total / max(m**2 - m, 1)


def on_simplex(shares: Array) -> Array:
    """Return the density closest to these shares in the 2-norm, shaped like them."""
    from ot.utils import proj_simplex  # noqa: PLC0415 (half a second that few need)

    nearest = np.asarray(proj_simplex(np.ascontiguousarray(shares).ravel()))
    # The projection sums to 1 up to rounding only.
    return np.asarray(nearest / nearest.sum()).reshape(shares.shape)


def check_estimator(estimator: object, rule: object, usual: str) -> None:
    """Check the name of an estimator, and that a rule is the usual one where nothing needs it."""
    one_of("estimator", estimator, get_args(SetEstimator))
    if estimator == "projection" and rule != usual:
        raise InputError(
            f"rule must be left out with estimator 'projection', which needs none, got "
            f"{shown(rule)}: set estimator to 'em' to estimate by it"
        )


def check_loss(epsilon: float) -> None:
    """Check an epsilon: above the range a report is all but certain, below it floats fail."""
    number_in("epsilon", epsilon, f"[{LEAST_EPSILON}, {MAX_EPSILON}]")


def checked_values(values: Ints, size: int) -> Ints:
    """Return values as an int64 array; the message of an error repeats none of them."""
    return np.ascontiguousarray(whole_array("values", values, ("n",), 0, size))


def check_users(n: int) -> None:
    """Check that there is at least one report: frequencies are divided by their number."""
    whole_number("n", n, 1)
