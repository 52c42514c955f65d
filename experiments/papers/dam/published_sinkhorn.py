"""The distance of the published experiments: Sinkhorn with lambda = 5, not debiased.

The paper names Sinkhorn's algorithm (section VII-C2), its published code lambda = 5. In Cuturi's
notation (NeurIPS 2013) the kernel is e^(-lambda cost). With squared distances in cells as cost and
the square root of the transport cost as the answer, a map is 0.13 to 0.16 cells from itself, as the
published code reports; with plain distances as cost it is up to 0.17, without the root 0.03.

It is here to read the paper's figures, and is not a metric of :mod:`ldpspatial`: use
:func:`ldpspatial.metrics.wasserstein`, which is exact and as fast, or the debiased
:func:`ldpspatial.metrics.sinkhorn_divergence`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from experiments.sources import Array
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.release import Release, Released

LAMBDA = 5.0
ITERATIONS = 1_000
TOLERANCE = 1e-6  # of the marginal, L1
CHECKED_EVERY = 10
TINY = 1e-290  # beyond 11 cells the kernel is 0 in floats: no division by it


def published_sinkhorn(truth: Array, density: Array) -> float:
    """Return the root of what Sinkhorn's coupling of two maps costs, in cells.

    Parameters
    ----------
    truth, density : (rows, columns) arrays
        Non-negative, each of sum 1.

    Returns
    -------
    float
        After at most 1,000 iterations; above 0 between a map and itself.

    Notes
    -----
    The kernel of a squared distance is a product over the axes, so a step is two small products of
    matrices.

    Examples
    --------
    >>> uniform = np.full((15, 15), 1 / 225)
    >>> round(published_sinkhorn(uniform, uniform), 3)
    0.158
    """
    steps = [np.subtract.outer(np.arange(n), np.arange(n)) ** 2.0 for n in truth.shape]
    down, across = (np.exp(-LAMBDA * squared) for squared in steps)
    right = np.ones_like(density)
    for iteration in range(ITERATIONS):
        left = truth / np.maximum(down @ right @ across, TINY)
        reached = np.maximum(down @ left @ across, TINY)
        checked = iteration % CHECKED_EVERY == 0
        if checked and np.abs(right * reached - density).sum() < TOLERANCE:
            break
        right = density / reached
    left = truth / np.maximum(down @ right @ across, TINY)
    moved_down = (steps[0] * down) @ right @ across
    moved_across = down @ right @ (steps[1] * across)
    return float(np.sqrt((left * (moved_down + moved_across)).sum()))


@dataclass(frozen=True)
class WithSinkhorn(Release):
    """A release whose facts also say how far off the published distance takes its map to be.

    Attributes
    ----------
    inner : Release
        A local one.
    """

    inner: Release

    name: ClassVar[str] = "with-sinkhorn"
    model: ClassVar[Model] = "local"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return the claim of the release inside."""
        return self.inner.claim(epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run the release inside and measure its map, and the truth against itself."""
        found = self.inner.release(users, epsilon, rng)
        truth = users.density
        facts = {
            "sinkhorn": published_sinkhorn(truth, found.density),
            "sinkhorn_self": published_sinkhorn(truth, truth),
        }
        return replace(found, facts={**found.facts, **facts})
