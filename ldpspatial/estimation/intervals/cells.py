"""How sure an estimate is of each cell, by one of two methods with different promises.

- **posterior** (:mod:`.posterior`): from samples of a field. Narrow, on any grid, and as right as
  measurements on real cities say, but where reports alone tell nearly all.
- **fisher** (:mod:`.fisher`): right for every density, and wide. Beyond some 20 cells a side it is
  too wide to say anything of a cell.

"auto" chooses between them (:mod:`.alone`). What they hold was measured
(docs/experiments/estimators.md).
"""

from ldpspatial.estimation.intervals.alone import narrowest
from ldpspatial.estimation.intervals.fisher import fisher, informative
from ldpspatial.estimation.intervals.interval import Uncertainty
from ldpspatial.estimation.intervals.posterior import posterior
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import instance, number_in, one_of

METHODS = ("auto", "fisher", "posterior")


def cell_intervals(estimate: Estimate, level: float = 0.95, method: str = "auto") -> Uncertainty:
    """Return confidence intervals per cell and for any region of whole cells.

    Parameters
    ----------
    estimate : Estimate
    level : float in (0, 1)
    method : {"auto", "fisher", "posterior"}
        "posterior" takes the samples of the estimate; where it has none (any rule but field), a
        field is fitted to its counts, in seconds. "fisher" covers at its level for every density,
        up to 64 x 64 cells. "auto": where there are samples, posterior, but fisher where reports
        alone tell about as much or contradict it (:mod:`.alone`); else fisher to 20 cells a side
        where the counts determine every cell, otherwise as with samples.

    Raises
    ------
    InputError
        A bad argument; more cells than the method takes; too few reports for "fisher"; a channel
        that the method does not take.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> west = np.zeros((5, 5), bool)
    >>> west[:, :2] = True
    >>> share = cell_intervals(EM().fit(channel, counts)).region(west)
    >>> share.lower < 0.4 < share.upper
    True
    """
    instance("estimate", estimate, Estimate)
    level = number_in("level", level, "(0, 1)")
    one_of("method", method, METHODS)
    if method == "fisher":
        return fisher(estimate, level)
    if method == "auto" and estimate.samples is None and (found := informative(estimate, level)):
        return found
    return posterior(estimate, level) if method == "posterior" else narrowest(estimate, level)
