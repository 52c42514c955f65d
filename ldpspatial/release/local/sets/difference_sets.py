"""Sets that are one set moved round: as much of a cell as subset selection tells, on any map.

A subset of a million cells takes a quarter of a million draws, and as many additions to be counted.
Here a report is one whole number s below v, and its set the cells x for which x - s modulo v is in
D, a difference set (Singer, "A Theorem in Finite Projective Geometry and Some Applications to
Number Theory", 1938): of its k places any two cells are in k (k - 1) / (v - 1) of the v sets
together. So frequencies are unbiased as those of subset selection are, with the variance that it
has on many cells, and how many sets hold each cell is a circular convolution of how often each s
came: one Fourier transform, however many people there are. Others have reported by designs in which
any two cells meet equally often: Acharya, Sun and Zhang, "Hadamard Response" (2019); Feldman,
Nelson, Nguyen and Talwar, "Private Frequency Estimation via Projective Geometry" (2022).

D are the hyperplanes' points: with q prime, v = (q^n - 1) / (q - 1) and i in D where the i-th power
of an element that generates all points has 0 for its last coordinate. A set holds one cell in q or
so, and 1 / (e^eps + 1) of them would be best. With the best prime for a million cells the variance
is up to 4.5 % above that of subset selection up to eps 5.9, and 13 % up to 8.

Cells have places in [0, v) that are drawn for each map, before anybody reports. They are public,
and are there for nothing but that no two cells are together in sets of other sizes than any two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, takewhile
from math import exp, isqrt
from typing import ClassVar

import numpy as np
import scipy
from scipy.fft import irfft, next_fast_len, rfft

from ldpspatial.compiled import compiled
from ldpspatial.privacy.whole_draws import TwoWeights, coins, two_weights
from ldpspatial.release.local.sets.frequencies import share_variance, unbiased_shares
from ldpspatial.release.local.sets.set_reports import (
    Array,
    Ints,
    Rng,
    SetRelease,
    SetReports,
    check_loss,
    check_users,
    checked_values,
)
from ldpspatial.release.release import Fact
from ldpspatial.validate import whole_number

MOST_SETS = 1 << 24  # that there may be: some seconds of transforms, and a gigabyte


@dataclass(frozen=True)
class DifferenceSets(SetRelease):
    """Sets of a cyclic design, one number a report, with projection on the densities or EM.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    """

    name: ClassVar[str] = "difference-sets"

    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return how many sets there are, and how many places each has."""
        plane = best_plane(size, epsilon)
        return {"sets": plane.sets, "set_size": plane.set_size}

    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return those of a set that holds the own cell, and of one that does not."""
        return two_weights(float(epsilon))

    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the number of cells that a set holds, over all places of the cells."""
        plane = best_plane(size, epsilon)
        held = np.arange(size + 1)
        law = scipy.stats.hypergeom.pmf(held, plane.sets, plane.set_size, size)
        # A set is drawn in proportion to its weight under a uniform cell.
        weighted = law * (size + self.weights(size, epsilon).gain * held)
        return np.asarray(weighted / weighted.sum())

    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw the sets of users who hold these values in [0, size), and list their cells."""
        given = checked_values(values, size)
        plane = best_plane(size, epsilon)
        places = plane.place(size, rng)
        cell_at = np.full(plane.sets, -1)
        cell_at[places] = np.arange(size)
        sets = plane.draw(places[given], epsilon, rng)
        starts = np.zeros(len(given) + 1, np.int64)
        np.cumsum(_set_sizes(sets, plane.difference, cell_at), out=starts[1:])
        cells = np.empty(starts[-1], np.min_scalar_type(size - 1))
        _fill_sets(sets, plane.difference, cell_at, cells)
        return SetReports(starts, cells, size, self.weights(size, epsilon), plane.lift(epsilon))

    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw reports and return unbiased shares of the values; they need not sum to 1."""
        check_users(len(values))
        given = checked_values(values, size)
        if size == 1:
            return np.ones(1)
        plane = best_plane(size, epsilon)
        places = plane.place(size, rng)
        came = np.bincount(plane.draw(places[given], epsilon, rng), minlength=plane.sets)
        hits = plane.hits(came)[places]
        return unbiased_shares(hits, len(given), plane.other(epsilon), plane.lift(epsilon))

    def variances(self, size: int, n: int, epsilon: float) -> tuple[float, float]:
        """Return the variances of a share near 0 and of one near 1, as subset selection does."""
        check_users(n)
        if size == 1:
            return 0.0, 0.0
        return best_plane(size, epsilon).variances(n, epsilon)


@dataclass(frozen=True)
class Plane:
    """The hyperplanes of the projective space of n coordinates over the field of q elements.

    Attributes
    ----------
    q : int
        A prime.
    n : int >= 2
    """

    q: int
    n: int

    @property
    def sets(self) -> int:
        """The number v of sets, and of places."""
        return int((self.q**self.n - 1) // (self.q - 1))

    @property
    def set_size(self) -> int:
        """The number k of places in a set, and of sets that hold a place."""
        return int((self.q ** (self.n - 1) - 1) // (self.q - 1))

    @property
    def difference(self) -> Ints:
        """(k,) array of D, in ascending order."""
        return _difference_set(self.q, self.n)

    def place(self, size: int, rng: Rng) -> Ints:
        """Return (size,) different places, drawn uniformly."""
        return np.asarray(rng.permutation(self.sets)[:size])

    def draw(self, own: Ints, epsilon: float, rng: Rng) -> Ints:
        """Return (n,) sets in [0, v) of users whose own places are given."""
        inside = self.difference
        outside = np.delete(np.arange(self.sets), inside)
        held = coins(self.own(epsilon), len(own), rng)
        steps = np.empty(len(own), np.int64)
        steps[held] = inside[rng.integers(self.set_size, size=int(held.sum()))]
        steps[~held] = outside[rng.integers(len(outside), size=int((~held).sum()))]
        return np.asarray((own - steps) % self.sets)

    def hits(self, came: Ints) -> Ints:
        """Return (v,) array of how many of the sets that came, a number of each, hold a place."""
        mask = np.zeros(self.sets)
        mask[self.difference] = 1
        # v may be next to a prime, of which transforms are slow; so not of v places, round which
        # they go by themselves, but of some more than twice as many.
        length = next_fast_len(2 * self.sets, real=True)
        waves = rfft(mask, length)
        waves *= rfft(came, length)
        both = irfft(waves, length, overwrite_x=True)
        both[: self.sets] += both[self.sets : 2 * self.sets]
        # Whole numbers: up to 10^8 reports the transforms are off by less than a thousandth.
        return np.asarray(np.rint(both[: self.sets]), np.int64)

    def own(self, epsilon: float) -> Fraction:
        """Return p, with which a set holds the own place: k sets do, v - k do not."""
        return two_weights(float(epsilon)).chance(self.set_size, self.sets - self.set_size)

    def other(self, epsilon: float) -> float:
        """Return with which probability a set holds a given other place: (k - p) / (v - 1)."""
        return float((self.set_size - self.own(epsilon)) / (self.sets - 1))

    def lift(self, epsilon: float) -> float:
        """Return by how much the own place is held more probably than another."""
        return float((self.own(epsilon) * self.sets - self.set_size) / (self.sets - 1))

    def variances(self, n: int, epsilon: float) -> tuple[float, float]:
        """Return the variances of a share near 0, and of one near 1, of n reports."""
        own, lift = self.own(epsilon), self.lift(epsilon)
        near_1 = float(own * (1 - own)) / (n * lift**2)
        return share_variance(n, self.other(epsilon), lift), near_1


@lru_cache(maxsize=64)
def best_plane(size: int, epsilon: float) -> Plane:
    """Return the space whose shares vary least, with a place for each of so many cells."""
    check_loss(epsilon)
    whole_number("size", size, 1)
    most = max(MOST_SETS, 2 * size + 1)
    return min(
        (each for each in _planes(exp(epsilon) + 1, size, most) if size <= each.sets <= most),
        key=lambda each: (each.variances(1, epsilon)[0], each.sets),
    )


def _planes(wanted: float, size: int, most: int) -> Iterator[Plane]:
    """List spaces of each dimension: near the wanted q, the least with enough sets, the largest."""
    for n in takewhile(lambda n: Plane(2, n).sets <= most, count(2)):
        least, largest = (int(number ** (1 / (n - 1))) for number in (size, most))
        middle = min(max(round(wanted), 2), largest)
        for q in (_prime(middle, -1), _prime(middle, 1), _prime(max(largest, 2), -1)):
            yield Plane(q, n)
        q = _prime(max(least - 1, 2), 1)
        while Plane(q, n).sets < size:
            q = _prime(q + 1, 1)
        yield Plane(q, n)


def _prime(number: int, step: int) -> int:
    """Return the first prime from a number >= 2 on, up or down."""
    while any(number % each == 0 for each in range(2, isqrt(number) + 1)):
        number += step
    return number


@lru_cache(maxsize=8)
def _difference_set(q: int, n: int) -> Ints:
    """Return (k,) places of the powers x^0, x^1, ... whose last coordinate is 0, in one space.

    x is a root of x^n = t_0 + t_1 x + ... + t_(n-1) x^(n-1), with the first t, counted up in base
    q from t_(n-1) = 1 on, under which v powers differ by more than a factor. There is one for
    every prime.
    """
    plane = Plane(q, n)
    number = q ** (n - 1)
    while number % q == 0 or not _meets_all(_digits(number, q, n), plane):
        number += 1
    found = np.empty(plane.set_size, np.int64)
    _fill_powers(_digits(number, q, n), q, plane.sets, found)
    found.setflags(write=False)
    return found


def _meets_all(taps: Ints, plane: Plane) -> bool:
    """Return whether the powers of x meet every point: x^v is a number, and no x^d with d | v."""
    v = plane.sets
    small = [d for d in range(1, isqrt(v) + 1) if v % d == 0]
    divisors = {*small, *(v // d for d in small)} - {v}
    return not _power(v, taps, plane.q)[1:].any() and all(
        _power(each, taps, plane.q)[1:].any() for each in divisors
    )


def _power(exponent: int, taps: Ints, q: int) -> Ints:
    """Return the coordinates of x^exponent."""
    power = np.zeros(len(taps), np.int64)
    power[0] = 1
    for digit in f"{exponent:b}":
        whole = np.convolve(power, power) % q
        if digit == "1":
            whole = np.append(0, whole)
        while len(whole) > len(taps):  # x^n is what the taps say
            top, whole = whole[-1], whole[:-1]
            whole[-len(taps) :] = (whole[-len(taps) :] + top * taps) % q
        power = whole
    return power


def _digits(number: int, base: int, length: int) -> Ints:
    """Return the digits of a number, the last one first."""
    return np.array([number // base**each % base for each in range(length)])


@compiled
def _fill_powers(taps, q, sets, found):  # type: ignore[no-untyped-def]
    """Set found to the powers whose last coordinate is 0."""
    power = np.zeros(taps.size, np.int64)
    power[0] = 1
    at = 0
    for i in range(sets):
        if power[-1] == 0:
            found[at] = i
            at += 1
        top = power[-1]
        for k in range(taps.size - 1, 0, -1):
            power[k] = (power[k - 1] + top * taps[k]) % q
        power[0] = top * taps[0] % q


@compiled
def _set_sizes(drawn, difference, cell_at):  # type: ignore[no-untyped-def]
    """Return how many cells each of the sets holds."""
    sizes = np.zeros(drawn.size, np.int64)
    for i in range(drawn.size):
        for step in difference:
            sizes[i] += cell_at[(drawn[i] + step) % cell_at.size] >= 0
    return sizes


@compiled
def _fill_sets(drawn, difference, cell_at, cells):  # type: ignore[no-untyped-def]
    """List the cells of all sets, one set after another."""
    at = 0
    for i in range(drawn.size):
        for step in difference:
            cell = cell_at[(drawn[i] + step) % cell_at.size]
            if cell >= 0:
                cells[at] = cell
                at += 1
