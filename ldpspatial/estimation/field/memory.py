"""The memory of windows drawn anew, while maps that reports tell stay as they are.

How much windows resemble each other, t, is known through the map of a window with few reports,
which is that of the others but for what t leaves open. A trajectory would have to move t with every
wave in time of maps that millions of reports hold fast, and hardly moves it. So t is tried anew
given the fields of the windows with most reports; those of the others follow their mean given
these, and keep their deviations from it in standard deviations. With no other windows this is to
draw t given the field. Any number of windows kept is right; which is quick depends on the reports.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.prior import SPECTRAL
from ldpspatial.estimation.field.way import Rings

Array = NDArray[np.float64]

MEMORY = SPECTRAL - 1  # its place among the unknowns
TIMES = 4  # that it is tried before a trajectory
LONGEST, SHORTEST = 1.5, 0.05  # steps, in standard deviations of the prior


class Fields(NamedTuple):
    """A stack of fields, and what they say of the reports.

    Attributes
    ----------
    waves : (S, W, d, d) array
    hypers : (S, 5) array
    density : (S, W, d, d) array
    fit : (S,) array
        Log-likelihoods of the counts in nats.
    """

    waves: Array
    hypers: Array
    density: Array
    fit: Array

    def chosen(self, taken: NDArray[np.bool_], other: "Fields") -> "Fields":
        """Return the other's fields where taken."""
        pairs = zip(self, other, strict=True)
        return Fields(*(np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


class Memory:
    """Moves of the windows' memory.

    Parameters
    ----------
    model : FieldModel
        Of two windows or more.
    """

    def __init__(self, model: FieldModel):
        self._model = model
        self._rings = Rings(model.prior, np.float64)
        ranked = np.argsort(-model.n.ravel(), kind="stable")  # most reports first
        self._windows = fft.idct(np.eye(len(ranked)), axis=0, norm="ortho")[ranked]

    def redrawn(self, fields: Fields, rng: np.random.Generator) -> Fields:
        """Return fields after some Metropolis steps that leave their posterior as it is."""
        windows = len(self._windows)
        for _ in range(TIMES):
            kept = windows if rng.random() < 0.5 else int(rng.integers(1, windows))
            length = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))
            hypers = fields.hypers.copy()
            hypers[:, MEMORY] += length * rng.standard_normal(len(hypers))
            tried, gain = self._followed(fields, hypers, kept)
            taken = np.log(rng.random(len(hypers))) < gain
            fields = fields.chosen(taken, tried)
        return fields

    def _followed(self, fields: Fields, hypers: Array, kept: int) -> tuple[Fields, Array]:
        """Return fields of another memory, and by how much their log-posterior is larger.

        By maps that are kept and the others' deviations, so that no volume changes.
        """
        model = self._model
        maps = np.einsum("wj,sjxy->swxy", self._windows, fields.waves)  # of windows, ranked
        apart = maps.reshape(*maps.shape[:2], -1)
        known, others = apart[:, :kept], apart[:, kept:]
        by_ring, *_ = self._rings.spectrum(hypers)
        scaled = known / np.exp(by_ring[0])[:, None, self._rings.of_wave]
        gain = 0.5 * (fields.hypers**2 - hypers**2).sum(1)
        before, after = (self._covariance(each) for each in (fields.hypers, hypers))
        for covariance, sign in ((before, -1), (after, 1)):
            between = covariance[:, :kept, :kept]
            squares = (scaled * np.linalg.solve(between, scaled)).sum((1, 2))
            volume = scaled.shape[2] * np.linalg.slogdet(between)[1]
            gain -= sign * 0.5 * (squares + volume)
        if kept == maps.shape[1]:
            return fields._replace(hypers=hypers), gain
        (follow, root), (follow_after, root_after) = (
            _given(each, kept) for each in (before, after)
        )
        own = np.linalg.solve(root, others - follow @ known)
        apart[:, kept:] = follow_after @ known + root_after @ own
        waves = np.einsum("wj,swxy->sjxy", self._windows, apart.reshape(maps.shape))
        state = model.at(model.prior.point_of(waves, hypers))
        return Fields(waves, hypers, state.density, state.fit), gain + state.fit - fields.fit

    def _covariance(self, hypers: Array) -> Array:
        """Return (S, W, W) covariances of the windows, ranked, over that in space."""
        _, log_tempo, *_ = self._rings.spectrum(hypers)
        variances = np.exp(2 * log_tempo)
        found: Array = np.einsum("wj,sj,vj->swv", self._windows, variances, self._windows)
        return found


def _given(covariance: Array, kept: int) -> tuple[Array, Array]:
    """Return how the others follow those kept, and a root of their covariance given these."""
    across = covariance[:, kept:, :kept]
    follow = np.linalg.solve(covariance[:, :kept, :kept], across.swapaxes(1, 2)).swapaxes(1, 2)
    left = covariance[:, kept:, kept:] - follow @ across.swapaxes(1, 2)
    return follow, np.linalg.cholesky(left)
