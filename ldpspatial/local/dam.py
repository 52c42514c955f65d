"""The client's own mechanisms as releases: DAM, DAM-NS and HUEM, each with EM.

Every user sends one report, from one of their positions drawn uniformly, so what the report
promises holds for the user with all their positions: the law of the report is a mixture of laws
whose ratio is at most e^epsilon, whatever the positions.
"""

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from client_sdk import response_table
from client_sdk.kernels import draw_many
from client_sdk.validate import MAX_EPSILON
from ldpspatial.channel import StampChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.release import (
    TAKING_PART,
    Model,
    PrivacyClaim,
    Release,
    Released,
    check_epsilon,
)
from ldpspatial.users import UserCells

ONE_REPORT = "one report a user, of one of the user's positions drawn uniformly"


@dataclass(frozen=True)
class _Disk(Release):
    """A response table of the client, drawn from as devices do, then EM.

    Attributes
    ----------
    rule : str
        When EM stops, as in :func:`ldpspatial.estimate`.
    """

    model: ClassVar[Model] = "local"
    rule: str = "scaled"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: the ratio of the table's whole weights is at most e^epsilon."""
        check_epsilon(epsilon)
        if epsilon > MAX_EPSILON:
            raise InputError(f"epsilon must be at most {MAX_EPSILON}, got {epsilon!r}")
        conditions = (ONE_REPORT, "the square and its cells are public", TAKING_PART)
        return PrivacyClaim("local", epsilon, conditions=conditions)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user from the table and estimate the density from their counts."""
        claim = self.claim(epsilon)
        rows, columns = users.shape
        if rows != columns:
            raise InputError(f"{self.name} needs a square map, got {rows} x {columns} cells")
        table = response_table(self.name, epsilon, rows)
        at = np.divmod(users.one_cell_each(rng), columns)
        out_rows, out_cols = (part + table.radius for part in draw_many(table, *at, rng.bytes))
        channel = StampChannel(table)
        height, width = channel.output_shape
        counts = np.bincount(out_rows * width + out_cols, minlength=height * width)
        found = estimate(channel, counts.reshape(height, width), self.rule)
        return Released(
            found.density,
            claim,
            {
                "radius": table.radius,
                "realised_epsilon": log(table.max_ratio()),
                "iterations": found.iterations,
            },
            found,
        )


@dataclass(frozen=True)
class Dam(_Disk):
    """Disk Area Mechanism with EM (Du et al., arXiv 2412.06541)."""

    name: ClassVar[str] = "dam"


@dataclass(frozen=True)
class DamNs(_Disk):
    """DAM without shrunken areas of mixed cells."""

    name: ClassVar[str] = "dam-ns"


@dataclass(frozen=True)
class Huem(_Disk):
    """Hybrid Uniform-Exponential Mechanism with EM."""

    name: ClassVar[str] = "huem"
