"""How surely averaging locates a device that stays: the exact Bayes attacker on k of its reports.

The attacker knows the table, takes every cell of the square to be equally likely, sees k reports of
a device that stayed in one cell, and names the cell of largest posterior; no other rule is right
more often. Reports are drawn independently, so the log-likelihood of a cell is the sum over the
reports of ln w(report - cell): the base weight drops out, and each report adds one stamp of
ln(w / B) to the cells around it, k |disk| additions in place of k d^2.

**The estimate.** Given the reports, the guess is right with the probability that the posterior
gives it, however many cells are tied. So the mean of the largest posterior over simulated devices
is the attacker's success, with less chance in it than the share of right guesses has. A number in
[0, 1] of mean p has a variance of at most p (1 - p), so Wilson's interval holds for its mean, too,
and is wider than it need be.

**What the claim allows.** Under a loss of k eps in all, no attacker can be right with more than
probability e^(k eps) / (e^(k eps) + d^2 - 1): the posterior odds of any two cells are at most
e^(k eps). k-ary randomised response attains this at k = 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from client_sdk import ResponseTable
from ldpspatial.channels.playing import draw_reports
from ldpspatial.compiled import compiled
from ldpspatial.validate import check_generator, instance, whole_number

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_REPORTS = 100_000  # of one device: an hourly series over eleven years
MAX_TRIALS = 100_000_000
CHUNK_REPORTS = 1 << 20  # 16 MB of reports at a time
TIED = 1e-9  # nats: far above the rounding of a sum of logarithms, far below what a report adds
Z95 = -float(ndtri(0.025))


@dataclass(frozen=True)
class Probability:
    """A probability, estimated by simulation.

    Attributes
    ----------
    estimate : float in [0, 1]
        Mean over the trials.
    standard_error : float
        Of that mean.
    lower, upper : float in [0, 1]
        Wilson's 95 % interval for as many right and wrong guesses; it holds at least at its level.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float

    @classmethod
    def of_trials(cls, total: float, total_of_squares: float, trials: int) -> "Probability":
        """Make one from the sums of numbers in [0, 1] and of their squares."""
        mean = min(max(total / trials, 0.0), 1.0)
        variance = max(total_of_squares / trials - mean * mean, 0.0)
        error = sqrt(variance / max(trials - 1, 1))
        middle = (mean + Z95**2 / (2 * trials)) / (1 + Z95**2 / trials)
        half = Z95 * sqrt(mean * (1 - mean) / trials + (Z95 / (2 * trials)) ** 2)
        half /= 1 + Z95**2 / trials
        return cls(mean, error, max(middle - half, 0.0), min(middle + half, 1.0))


@dataclass(frozen=True)
class StillDeviceRisk:
    """How often the attacker locates a device that stays in one cell.

    Attributes
    ----------
    reports : int
        Reports of the device that the attacker sees.
    trials : int
        Devices simulated.
    exact_cell : Probability
        The cell that is named is the device's.
    within_one_cell : Probability
        It is the device's, or one of the up to eight around it. The attacker still names the
        likeliest cell, one of those tied at random, and not the likeliest neighbourhood.
    """

    reports: int
    trials: int
    exact_cell: Probability
    within_one_cell: Probability


def still_device_risk(
    table: ResponseTable, reports: int, trials: int, rng: np.random.Generator
) -> StillDeviceRisk:
    """Simulate devices that stay in a cell, and the attacker who sees all of their reports.

    Parameters
    ----------
    table : ResponseTable
    reports : int in [1, 100,000]
        Fresh reports of each device, k.
    trials : int in [2, 100,000,000]
        Devices, each in a cell drawn uniformly. The work is trials x reports x size of the disk.
    rng : numpy.random.Generator
        Draws cells, and the reports in place of the operating system's entropy.

    Returns
    -------
    StillDeviceRisk

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> table = response_table("dam", 3.5, 15)
    >>> week = still_device_risk(table, 7, 2000, np.random.default_rng(1))
    >>> round(week.exact_cell.estimate, 1), round(week.within_one_cell.estimate, 1)
    (0.4, 0.8)
    """
    instance("table", table, ResponseTable)
    k = whole_number("reports", reports, 1, MAX_REPORTS)
    n = whole_number("trials", trials, 2, MAX_TRIALS)
    check_generator(rng)
    stamp = _log_stamp(table)
    half_widths = np.array(table.half_widths, np.int64)
    sums = np.zeros(2)
    squares = np.zeros(2)
    for devices in _chunks(n, max(CHUNK_REPORTS // k, 1)):
        rows, cols = np.repeat(rng.integers(table.cells, size=(2, devices)), k, axis=1)
        seen = [out.reshape(devices, k) for out in draw_reports(table, rows, cols, rng)]
        found = np.empty((2, devices))
        _attack(table.cells, stamp, half_widths, seen[0], seen[1], found)
        sums += found.sum(axis=1)
        squares += (found**2).sum(axis=1)
    exact, near = (
        Probability.of_trials(float(total), float(square), n)
        for total, square in zip(sums, squares, strict=True)
    )
    return StillDeviceRisk(k, n, exact, near)


def one_report_risk(table: ResponseTable) -> Fraction:
    """Return the probability that one report locates its device, exactly.

    The attacker is right with the probability of the report under the cell that is named, so the
    sum over the reports y of max over the cells x of P(y | x) / d^2.

    Parameters
    ----------
    table : ResponseTable

    Examples
    --------
    >>> from client_sdk import response_table
    >>> round(float(one_report_risk(response_table("dam", 3.5, 15))), 4)
    0.0411
    """
    instance("table", table, ResponseTable)
    b = table.radius
    d = table.cells
    likeliest = np.zeros((d + 2 * b, d + 2 * b), np.int64)
    for row in table.output_rows:
        margin = table.margin(row)
        likeliest[row + b, b - margin : b + d + margin] = table.base_weight
    for (drow, dcol), weight in table.weights.items():
        around = likeliest[b + drow : b + drow + d, b + dcol : b + dcol + d]
        # Over all d x d input cells at once: the report at this offset from each of them.
        np.maximum(around, weight, out=around)
    # Python's whole numbers: the sum may exceed 64 bits.
    return Fraction(sum(likeliest.ravel().tolist()), table.total_weight * d * d)


def _chunks(total: int, size: int) -> Iterator[int]:
    """Cut a number into parts of at most ``size``."""
    for start in range(0, total, size):
        yield min(size, total - start)


def _log_stamp(table: ResponseTable) -> Array:
    """Return ln(w / B) at [b + drow, b + dcol], 0 outside the disk."""
    b = table.radius
    stamp = np.zeros((2 * b + 1, 2 * b + 1))
    for (drow, dcol), weight in table.weights.items():
        stamp[b + drow, b + dcol] = log(weight / table.base_weight)
    return stamp


@compiled
def _attack(d, stamp, half_widths, rows, cols, found):  # type: ignore[no-untyped-def]
    """Fill (2, n) posteriors from (n, k) reports: of the guess, and of it with its neighbours."""
    b = half_widths.size - 1
    scores = np.empty((d, d))
    for device in range(rows.shape[0]):
        scores[:] = 0.0
        for k in range(rows.shape[1]):
            row = rows[device, k]
            col = cols[device, k]
            for i in range(max(row - b, 0), min(row + b, d - 1) + 1):
                # The cells of row i whose disk holds the report: the disk is its own mirror image.
                h = half_widths[abs(row - i)]
                weights = stamp[b + row - i]
                for j in range(max(col - h, 0), min(col + h, d - 1) + 1):
                    scores[i, j] += weights[b + col - j]
        top = scores.max()
        # The largest term is 1, so the sum neither overflows nor vanishes.
        posterior = np.exp(scores - top)
        posterior /= posterior.sum()
        found[0, device] = posterior.max()
        ties, near = 0, 0.0
        for i in range(d):
            for j in range(d):
                if scores[i, j] < top - TIED:
                    continue
                ties += 1
                for row in range(max(i - 1, 0), min(i + 1, d - 1) + 1):
                    for col in range(max(j - 1, 0), min(j + 1, d - 1) + 1):
                        near += posterior[row, col]
        # One of the tied cells is named at random: their mean has less chance in it than a coin.
        found[1, device] = near / ties
