"""EMS on bins finer than the cells of a coordinate, as square wave's authors run it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel, on_density, on_ratio
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.em import Smoothing, expectation_maximisation
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.estimation.smoothing import binomial
from ldpspatial.estimation.stopping import StoppingRule, check_stop, stopping_rule
from ldpspatial.validate import callback

Array = NDArray[np.float64]

BINS = 1024  # of the whole interval, as in Li et al. 2020, section 6.1
MAX_STEPS = 10_000


class CutChannel:
    """The channel of a row of cells, each of them cut into equal parts that report alike.

    Parameters
    ----------
    channel : Channel
        Of a map of one row.
    parts : int >= 1
        Parts a cell.
    """

    def __init__(self, channel: Channel, parts: int):
        self._channel = channel
        self._parts = parts
        self.input_shape = (1, channel.input_shape[1] * parts)
        self.epsilon = channel.epsilon

    @property
    def support(self) -> NDArray[np.bool_]:
        """Mask of the reports that some input can give."""
        return self._channel.support

    @on_density
    def forward(self, density: Array) -> Array:
        """Return the distribution of reports under a density of parts."""
        return np.asarray(self._channel.forward(self.of_cells(density)))

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio, shaped like a density of parts."""
        return np.repeat(self._channel.adjoint(ratio), self._parts, axis=1)

    def of_cells(self, density: Array) -> Array:
        """Return the density of the cells from that of their parts."""
        return np.asarray(density.reshape(1, -1, self._parts).sum(axis=2))


@dataclass(frozen=True)
class FineEMS(Estimator):
    """EM on a row of about 1,024 bins, smoothed by [1, 2, 1] / 4 after each step.

    Li et al. (SIGMOD 2020, sections 5.5 and 6.1) smooth bins of 1/1024 of the interval, whatever
    the width of what they are read out in. Smoothing whole cells instead blurs a map of 15 cells
    by far more than its noise asks for. Reports are of cells here, so that the parts of one cell
    differ by smoothing alone.

    Attributes
    ----------
    stop : str or StoppingRule
        As :class:`ldpspatial.EM` has it, for the channel of the cells.
    """

    stop: "str | StoppingRule" = "scaled"

    kind: ClassVar[str] = "ems"

    def __post_init__(self) -> None:
        check_stop(self.stop)

    @property
    def name(self) -> str:
        """Name of the stopping rule."""
        return self.stop if isinstance(self.stop, str) else self.stop.name

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Iterate until the rule is met, and sum the bins of each cell."""
        checked = check_counts(channel, counts)
        callback("progress", progress)
        cut = CutChannel(channel, -(-BINS // channel.input_shape[1]))
        fit = expectation_maximisation(
            cut,
            checked,
            stopping_rule(self.stop, channel),
            MAX_STEPS,
            binomial,
            progress=progress,
        )
        return Estimate(
            cut.of_cells(fit.density),
            fit.trace[-1],
            len(fit.trace) - 1,
            fit.converged,
            tuple(fit.trace),
            channel,
            checked,
            self,
            Smoothing("fine bins"),
        )
