"""Reports of maps that the prior of the field draws, on a small grid."""

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.estimation.field.prior import HYPERS, FieldPrior, link

Array = NDArray[np.float64]
D = 6
CHANNEL = StampChannel(response_table("dam", 2.0, D, radius=2))
N = 3_000


def reports(density: Array, n: int, rng: np.random.Generator, channel: StampChannel) -> Array:
    law = channel.forward(density)[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = rng.multinomial(n, law / law.sum())
    return counts


def drawn(rng: np.random.Generator, cells: int = D, unknowns: Array | None = None) -> Array:
    """Draw a map from the prior."""
    prior = FieldPrior(cells)
    hypers = rng.standard_normal((1, HYPERS)) if unknowns is None else unknowns[None]
    waves = prior.spectrum(hypers).amplitude[0, 0] * rng.standard_normal((cells, cells))
    emptied = link(1.0 + fft.idctn(waves, norm="ortho"))[0]
    density = np.exp(emptied - emptied.max())
    return np.asarray(density / density.sum())
