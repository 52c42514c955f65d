"""NoisyLevel: what was measured on one level of a quadtree."""

from dataclasses import dataclass, field
from math import isnan

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, number_in, whole_array, whole_number

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NoisyLevel:
    """Sums of people in nodes of one level, each with independent noise of mean 0.

    Attributes
    ----------
    level : int >= 0
        0 is the whole map.
    nodes : (m,) int64 array
        Numbers of the nodes, ascending, as :class:`ldpspatial.places.quadtree.Quadtree` counts.
    sums : (m,) float array
        In people; of no meaning where the variance is infinite.
    variance : float in [0, inf]
        Of the noise of one sum, in people squared; 0 for what is public, infinite for a level of
        which no sum was taken.
    per_person : float >= 0
        What each person in a node adds to the variance of its sum: (1 - f) / f where a random
        share f of all people was counted, afresh on each level, and sums were divided by f. Of
        disjoint shares it is that of each; of all of them together, too much.
    step : float >= 0
        Noise is in whole multiples of this, in people; 0 for steps too small to matter.
    measured : (m,) bool array, optional
        Nodes of which a sum was taken, by default all; of the others sums are of no meaning.
    excess : float >= 0
        Excess kurtosis of the noise of one sum: 3 for Laplace noise, 3 / k for k times as much
        together, 0 for normal noise.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    level: int
    nodes: Ints = field(repr=False)
    sums: Array = field(repr=False)
    variance: float
    per_person: float = 0.0
    step: float = 0.0
    measured: Bools | None = field(default=None, repr=False)
    excess: float = 3.0

    def __post_init__(self) -> None:
        level = whole_number("level", self.level, 0)
        nodes = whole_array("nodes", self.nodes, ("m",), 0, 4**level)
        if (np.diff(nodes) <= 0).any():
            raise InputError(f"nodes of level {level} must ascend and differ")
        sums = number_array("sums", self.sums, ("m",))
        if sums.shape != nodes.shape:
            raise InputError(f"sums must be one a node, got {len(sums)} for {len(nodes)}")
        variance = float(self.variance)
        if isnan(variance) or variance < 0:
            raise InputError(f"variance must lie in [0, inf], got {variance}")
        per_person = number_in("per_person", self.per_person, "[0, inf)")
        step = number_in("step", self.step, "[0, inf)")
        excess = number_in("excess", self.excess, "[0, inf)")
        checked = {"nodes": nodes, "sums": sums, "variance": variance, "per_person": per_person}
        if self.measured is not None:
            checked["measured"] = self._checked_mask(self.measured)
        for name, value in {**checked, "step": step, "excess": excess}.items():
            object.__setattr__(self, name, value)

    def _checked_mask(self, measured: object) -> Bools:
        mask = np.asarray(measured)
        if mask.dtype != bool or mask.shape != (len(self.nodes),) or not mask.any():
            raise InputError("measured must be a bool for each node, one of them true at least")
        return mask

    def by_node(self, variances: Array | float) -> Array:
        """Return the variance of each node's sum: as given, infinite where none was taken."""
        if self.measured is None:
            return np.broadcast_to(variances, self.nodes.shape).astype(np.float64)
        return np.where(self.measured, variances, np.inf)

    @property
    def number(self) -> int:
        """How many sums were taken."""
        if np.isinf(self.variance):
            return 0
        return len(self.nodes) if self.measured is None else int(self.measured.sum())

    @classmethod
    def unmeasured(cls, level: int, nodes: Ints) -> "NoisyLevel":
        """Return a level of which no sum was taken."""
        return cls(level, nodes, np.zeros(len(nodes)), np.inf)
