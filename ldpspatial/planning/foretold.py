"""The error to expect of a map, from the document of its collection and a number of reports.

What :func:`ldpspatial.plan` measures for grids of many sizes, here for one that is fixed, on maps
that are given as cell shares: a number of reports of any size then costs the same. Reports are
drawn as those of independent people, whose law the map is; so the error includes that the people
who reported are a sample.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk import Collection
from ldpspatial.channels.disk import StampChannel
from ldpspatial.datasets import city_map
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.estimation.estimate import Rule
from ldpspatial.metrics import wasserstein
from ldpspatial.places.cell_maps import cell_map
from ldpspatial.planning.rehearsal import People
from ldpspatial.validate import callback, check_generator, instance, shown, whole_number

Array = NDArray[np.float64]

ROUNDING = 1e-6  # of the sum of a map
PEOPLE = 300_000  # that the law of a synthetic map is read from


@dataclass(frozen=True)
class ForetoldError:
    """Exact W2 between maps and their estimates, in metres (plane units on a plane grid).

    Attributes
    ----------
    w2 : dict of str to float
        By map, mean over the collections played.
    highest : dict of str to float
        The largest over the collections played.
    reports : int
        Reports of each collection.
    """

    w2: dict[str, float]
    highest: dict[str, float]
    reports: int


def synthetic_densities(cells: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return what plans are made on, a synthetic city, as (cells, cells) shares by name."""
    d = whole_number("cells", cells, 1, 1024)
    check_generator(rng)
    law = city_map()
    return {law.name: People.on_grid(law, law.draw(PEOPLE, rng), d).truth}


def foretell(
    collection: Collection,
    reports: int,
    densities: Mapping[str, ArrayLike],
    rng: np.random.Generator,
    repeats: int = 3,
    rule: Rule | None = None,
    tell: Callable[[], None] | None = None,
) -> ForetoldError:
    """Play a collection on maps and measure how far the estimates are from them.

    Parameters
    ----------
    collection : Collection
    reports : int
        Those of each collection played, from 1 on.
    densities : mapping of str to (d, d) array
        Shares of the people by cell, of sum 1, by a name.
    rng : numpy.random.Generator
    repeats : int in [1, 1000]
        Collections played on each map.
    rule : str, StoppingRule or Estimator
        How the map is estimated, as in :func:`ldpspatial.estimate`.
    tell : callable, optional
        Called after every collection that was played.

    Raises
    ------
    InputError
        An argument breaks its rule.
    """
    grid = instance("collection", collection, Collection).grid
    n = whole_number("reports", reports, 1, 10**12)
    times = whole_number("repeats", repeats, 1, 1000)
    check_generator(rng)
    callback("tell", tell)
    channel = StampChannel(collection.table)
    found: dict[str, list[float]] = {}
    if not isinstance(densities, Mapping):
        raise InputError(f"densities must be a mapping of names to maps, got {shown(densities)}")
    for name, values in densities.items():
        density = cell_map(f"densities[{name!r}]", values, grid)
        if abs(density.sum() - 1) > ROUNDING:
            raise InputError(f"densities[{name!r}] must sum to 1, got {density.sum():g}")
        density /= density.sum()
        outputs = channel.forward(density)
        law = np.maximum(outputs, 0).ravel()
        for _ in range(times):
            counts = rng.multinomial(n, law / law.sum()).reshape(outputs.shape)
            guess = estimate(channel, counts, rule).density
            w2 = wasserstein(density, guess, cell=grid.cell_size)
            found.setdefault(name, []).append(w2)
            if tell is not None:
                tell()
    return ForetoldError(
        {name: float(np.mean(each)) for name, each in found.items()},
        {name: max(each) for name, each in found.items()},
        n,
    )
