"""What is known of a map before a report is seen: where people can be, and a map that is public."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.stacks import Stack
from ldpspatial.errors import InputError
from ldpspatial.validate import number_array

Array = NDArray[np.float64]

SQUARE = ("d", "d")
FLOOR = 0.002  # of a public map that is spread evenly: nobody is nowhere for certain


@dataclass(frozen=True)
class Known:
    """Checked side information.

    Attributes
    ----------
    support : (d, d) array in [0, 1] or None
        Share of each cell where people can be.
    prior : (d, d) array of numbers >= 0 or None
        How many people are about in each cell, up to a factor.
    """

    support: Array | None
    prior: Array | None

    @classmethod
    def checked(cls, support: Any, prior: Any) -> "Known":
        """Return both as arrays.

        Raises
        ------
        InputError
            One is no square of numbers, is negative, or empty; a support is above 1; they are of
            different shapes, or the prior is 0 wherever people can be.
        """
        if support is not None:
            support = number_array("support", support, SQUARE, "[0, 1]", bools=True)
            if not support.any():
                raise InputError("support must hold at least one cell, got none")
        if prior is not None:
            prior = number_array("prior", prior, SQUARE, "[0, inf)")
            if support is not None and prior.shape != support.shape:
                raise InputError(
                    f"prior must have the shape {support.shape} of support, got {prior.shape}"
                )
            where = "" if support is None else " where support is"
            if not (prior if support is None else prior[support > 0]).any():
                raise InputError(f"prior must be above 0 somewhere{where}, got 0 everywhere")
        return cls(support, prior)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse what is of another grid."""
        for name, values in (("support", self.support), ("prior", self.prior)):
            if values is not None and values.shape != shape:
                raise InputError(f"{name} must have the map's shape {shape}, got {values.shape}")

    def where(self, operators: Stack) -> NDArray[np.bool_] | None:
        """Return the cells of a stack, or blocks of them, in which people can be."""
        return None if self.support is None else operators.gathered(self.support) > 0

    def log_public(self, operators: Stack) -> Array | None:
        """Return the logarithm of the public map, of mean 0 where people can be."""
        if self.prior is None:
            return None
        where = self.where(operators)
        inside = np.ones((operators.cells,) * 2) if where is None else where.astype(float)
        weights = operators.gathered(self.prior / self.prior.max()) * inside
        floored = (1 - FLOOR) * weights / weights.sum() + FLOOR * inside / inside.sum()
        logarithm = np.log(np.where(inside > 0, floored, 1.0))
        return np.asarray((logarithm - logarithm.sum() / inside.sum()) * inside)

    def inside(self, operators: Stack, densities: Array) -> Array:
        """Spread densities of blocks over their cells, (S, d, d); 0 where nobody can be."""
        spread = operators.spread(densities)
        if self.support is None:
            return spread
        share = operators.spread(operators.gathered(self.support)[None])[0]
        spread = spread * np.divide(
            self.support, share, out=np.zeros_like(self.support), where=share > 0
        )
        return np.asarray(spread / spread.sum((1, 2), keepdims=True))
