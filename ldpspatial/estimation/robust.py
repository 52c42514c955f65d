"""Robust: a field fitted to the reports that are left when those that were forged are taken out.

What is forged, and how sure one can be of it, is the check's to say: see :mod:`.forgery.forged`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel, is_conditional
from ldpspatial.errors import InputError
from ldpspatial.estimation.field.estimator import Field
from ldpspatial.estimation.field.posterior import Posterior
from ldpspatial.estimation.forgery.forged import without_forged
from ldpspatial.estimation.result import Estimate, Estimator, Progress

Array = NDArray[np.float64]

ROBUST = "robust"
NOTHING = "nothing"


@dataclass(frozen=True)
class Cleaned(Posterior):
    """What a field says of the reports that it was fitted to, and which were left out.

    Attributes
    ----------
    taken_out : float in [0, 1]
        Share of all reports that were taken for forged.
    taken_shapes : str
        Their shapes, as the check names them, or "nothing".
    """

    taken_out: float = 0.0
    taken_shapes: str = NOTHING


def honest_reports(estimate: Estimate) -> float:
    """Return how many reports a robust estimate did not take for forged; of others all of them."""
    if isinstance(estimate.details, Cleaned):
        return estimate.n * (1 - estimate.details.taken_out)
    return float(estimate.n)


def honest_counts(estimate: Estimate) -> Array:
    """Return the counts without what a robust estimate took for forged; of others all of them."""
    if isinstance(estimate.details, Cleaned) and estimate.details.taken_out > 0:
        return without_forged(estimate.channel, estimate.counts).counts
    return estimate.counts


class Robust(Field):
    """A field that leaves out what the check of the fit takes for forged.

    Where the check finds the counts plausible it is :class:`Field` itself. Where it does not, it
    takes out what is too much in single output cells for any map, and the shapes that the check
    names: the margin, rings and checkerboards, blocks. It cannot see honest reports of places where
    nobody was. The estimate keeps all counts, so its own check still says that they do not fit; its
    log-likelihood is that of the reports that were left.

    Attributes
    ----------
    point, support, prior, map_alone
        As in :class:`Field`.

    Raises
    ------
    InputError
        As in :class:`Field`.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> counts[2, 3] += 800
    >>> found = Robust().fit(channel, counts)
    >>> round(found.details.taken_out, 2), found.details.taken_shapes
    (0.06, 'single outputs')
    """

    @property
    def name(self) -> str:
        """The one rule that it has."""
        return ROBUST

    def _fit(
        self, channel: Channel, windows: Sequence[Array], progress: Progress | None
    ) -> tuple[tuple[Estimate, ...], list[tuple[int, str]]]:
        if is_conditional(channel):
            raise InputError(
                f"channel must know all possible reports with rule {ROBUST}, got a "
                f"{type(channel).__name__}, which knows only those that came"
            )
        cleaned = [without_forged(channel, counts) for counts in windows]
        found, warned = super()._fit(channel, [each.counts for each in cleaned], progress)
        estimates = []
        for counts, honest, estimate in zip(windows, cleaned, found, strict=True):
            told = Cleaned(
                **asdict(estimate.details),  # type: ignore[arg-type]
                taken_out=honest.share,
                taken_shapes="; ".join(honest.shapes) or NOTHING,
            )
            estimates.append(replace(estimate, counts=counts, details=told))
        return tuple(estimates), warned

    @classmethod
    def restored(cls, name: str, facts: Mapping[str, Any]) -> tuple[Estimator, Any]:
        """Return the estimator with what a file says of its posterior, and of what it left out."""
        estimator, told = super().restored(name, facts)
        share, shapes = facts["taken_out"], facts["taken_shapes"]
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError("no such share is ever taken out")
        return estimator, Cleaned(**asdict(told), taken_out=share, taken_shapes=shapes)
