"""Count-min sketch: every level of the map in a table much shorter than the map.

A table has ``depth`` rows and ``width`` places in each. Row r counts the people of cell x at place
h_r(x); a cell's count is read from its place in every row, each of which other cells may share
(Cormode and Muthukrishnan 2005). The hash functions are public and drawn before anybody reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import ClassVar, Literal, get_args

import numpy as np

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.levels.level_choice import (
    ChosenByTruth,
    LevelCounts,
    OneLevel,
    uniform_error,
)
from ldpspatial.release.distributed.levels.map_levels import Array, Ints, Levels, ones_at
from ldpspatial.validate import one_of, true_or_false, whole_number

SketchEstimator = Literal["median", "minimum"]
PRIME = (1 << 31) - 1  # products of two residues fit into 64 bits
CHUNK = 1 << 16  # cells that are read from all rows at once
DEVIATIONS = 1.4826  # standard deviation by median absolute deviation, of a normal variable
OF_MEDIAN = sqrt(pi / 2)  # standard error of its median by that of its mean


@dataclass(frozen=True, eq=False)
class RowHashes:
    """A hash function for each row: h(x) = ((a x + b) mod p) mod width, p = 2^31 - 1.

    With a in [1, p) and b in [0, p) uniform, two keys below p meet in a row with probability at
    most 1 / width (Carter and Wegman 1979).

    Attributes
    ----------
    width : int
    multipliers, offsets : (depth,) int64 arrays
        a and b of each row: public, the same for all clients.
    """

    width: int
    multipliers: Ints
    offsets: Ints

    @classmethod
    def draw(cls, width: int, depth: int, rng: np.random.Generator) -> "RowHashes":
        """Draw the functions of ``depth`` rows."""
        return cls(width, rng.integers(1, PRIME, depth), rng.integers(0, PRIME, depth))

    def places(self, row: int, keys: Ints) -> Ints:
        """Return the places of keys, whole numbers in [0, p), in a row."""
        places: Ints = (self.multipliers[row] * keys + self.offsets[row]) % PRIME % self.width
        return places


@dataclass(frozen=True, eq=False)
class SketchCounts(LevelCounts):
    """Counts read from noisy tables.

    Attributes
    ----------
    tables : sequence of (depth, width) arrays
        Where levels 1, 2, ... are: all in one table, or each in its own.
    load : int
        How many ones each client adds to a row of a table.
    hashes : RowHashes
        Of every table. The key of a cell is its place among the cells of all levels.
    estimator : {"median", "minimum"}
        What is made of a cell's counts in the rows.
    """

    tables: Sequence[Array]
    load: int
    hashes: RowHashes
    estimator: SketchEstimator

    def counts(self, level: int) -> Array:
        """Return the counts that all rows together estimate."""
        return self.read(level, range(len(self.hashes.offsets)))

    def read(self, level: int, rows: Sequence[int]) -> Array:
        """Return the counts of a level, shape ``sides(level)``, that some of the rows estimate."""
        keys = self._keys(level)
        found = np.empty(len(keys))
        for start in range(0, len(keys), CHUNK):
            part = slice(start, start + CHUNK)
            table = self.tables[level - 1]
            seen = np.stack([table[row, self.hashes.places(row, keys[part])] for row in rows])
            of_rows = np.median if self.estimator == "median" else np.min
            found[part] = of_rows(seen, axis=0)
        return found.reshape(self.levels.sides(level))

    def squared_error(self, level: int) -> tuple[float, float]:
        """Estimate by cross-validation: a density from half of the rows against each other row.

        Rows have hash functions and noise of their own, and what a row shows at a cell's place,
        less what is to be expected of other cells, is the cell's count in the mean: each row
        estimates the product of density and truth without bias, a person compared with the count
        of the others as in `product_with_mean`. The median of the rows is taken, and its standard
        error from their median deviation, as a row in which two busy cells meet is far off. The
        density from half of the rows stands for that from all. The two halves see the same
        people, so their errors are averaged, not pooled.
        """
        people = self.people[level - 1]
        areas = self.levels.areas(level)
        halves = [range(first, len(self.hashes.offsets), 2) for first in (0, 1)]
        estimates = []
        errors = []
        for used, held_out in (halves, halves[::-1]):
            counts = self.read(level, used)
            total = np.maximum(counts, 0).sum()
            if total == 0 or people == 0:
                return uniform_error(self.levels), 0.0
            fit = (np.maximum(counts, 0) ** 2 / areas).sum() / total**2
            # Less one: a person is compared with the count of the others.
            weights = (np.maximum(counts - 1, 0) / (areas * total * people)).ravel()
            products = np.array([self._product(level, weights, row) for row in held_out])
            middle = np.median(products)
            estimates.append(fit - 2 * middle)
            deviation = DEVIATIONS * np.median(np.abs(products - middle))
            errors.append(2 * OF_MEDIAN * deviation / sqrt(len(products)))
        return float(np.mean(estimates)), float(np.mean(errors))

    def _product(self, level: int, weights: Array, row: int) -> float:
        """Return the sum over a level's cells of weight times count, as a row estimates it.

        The mean of what is seen at a cell's place is count + (load people - count) / width.
        """
        width = self.hashes.width
        places = self.hashes.places(row, self._keys(level))
        # The sum over cells of weight times what stands at their place, added up by place first.
        seen = np.bincount(places, weights, width) @ self.tables[level - 1][row]
        others = weights.sum() * self.load * self.people[level - 1] / width
        return float((seen - others) / (1 - 1 / width))

    def _keys(self, level: int) -> Ints:
        start = self.levels.start(level)
        return np.arange(start, start + self.levels.cells(level))


@dataclass(frozen=True)
class CountMin(OneLevel):
    """All levels in a count-min sketch, one level of it published (Bagdasaryan et al. 2022).

    Every client adds a one to each row for each level; the L1 norm of what it adds is depth times
    levels, which is where the noise comes from.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.
    width, depth : int
        Places in a row, at least 2, and rows, at least 4.
    per_level : bool
        A table for each level, in one sum: the same noise, fewer cells at a place, and a vector
        that is as many times longer.
    estimator : {"median", "minimum"}
        What is made of a cell's counts in the rows. The minimum bounds a count from above where
        there is no noise; with noise it lies far below.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    name: ClassVar[str] = "count-min"
    width: int = 2000
    depth: int = 20
    per_level: bool = False
    estimator: SketchEstimator = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field, least in (("width", 2), ("depth", 4)):
            whole_number(field, getattr(self, field), least, PRIME)
        true_or_false("per_level", self.per_level)
        one_of("estimator", self.estimator, get_args(SketchEstimator))

    def tables(self, levels: Levels) -> int:
        """Return the number of tables."""
        return levels.depth if self.per_level else 1

    def vector_length(self, levels: Levels) -> int:
        """Return the number of places in all tables."""
        return self.tables(levels) * self.depth * self.width

    def collect(
        self, levels: Levels, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> SketchCounts:
        """Return what a server can read from the noisy tables, all in one sum."""
        longest = max(levels.length, self.vector_length(levels))
        if longest >= PRIME:
            raise InputError(f"cells on all levels and places must be below {PRIME}, got {longest}")
        hashes = RowHashes.draw(self.width, self.depth, rng)
        keys = levels.index_all(cells)
        table = np.arange(levels.depth) * self.depth if self.per_level else 0
        places = np.empty((*keys.shape, self.depth), dtype=np.int32)
        for row in range(self.depth):
            places[:, :, row] = (table + row) * self.width + hashes.places(row, keys)
        contributions = ones_at(places.reshape(len(cells), -1), self.vector_length(levels))
        found = self.cohort.sum(contributions, epsilon, self.depth * levels.depth, rng)
        tables = list(found.counts.reshape(-1, self.depth, self.width).astype(np.float64))
        if not self.per_level:
            tables *= levels.depth  # the one table stands for every level
        people = (found.survivors,) * levels.depth
        load = 1 if self.per_level else levels.depth
        return SketchCounts(levels, people, epsilon, tables, load, hashes, self.estimator)


@dataclass(frozen=True)
class CountMinMinimum(CountMin):
    """The same with the minimum of the rows: the sketch's own rule, which noise makes useless."""

    name: ClassVar[str] = "count-min-minimum"
    estimator: SketchEstimator = "minimum"


@dataclass(frozen=True)
class CountMinOracle(ChosenByTruth, CountMin):
    """Median of the rows, and the level chosen against the truth."""

    name: ClassVar[str] = "count-min-oracle"
