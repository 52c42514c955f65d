"""The recommended distributed release where two servers that do not collude take the reports."""

from dataclasses import dataclass
from typing import ClassVar

from ldpspatial.release.distributed.levels.distributed_levels import DistributedLevels
from ldpspatial.release.distributed.sums.cohort import REALISTIC
from ldpspatial.release.distributed.sums.two_servers.batch import Batch
from ldpspatial.release.level_sums import Asked
from ldpspatial.validate import instance

SOME_FAIL = Batch(drop_out=REALISTIC.drop_out)


@dataclass(frozen=True)
class TwoServers(DistributedLevels):
    """Levels asked as by `distributed-levels`, of checked reports in shares to two servers.

    A batch a level: each client divides a vector with a one at its node, or zeros, between two
    servers and proves to them that it holds no more than that (Prio3MultihotCountVec). Each
    server adds noise to its sum that is enough by itself, so the map has the noise of both, and one
    of them may be against the clients. Who fails makes the people fewer and nothing else. How it
    would run on deployed servers: docs/two-servers.md.

    Attributes
    ----------
    cohort : Batch
        Who stays away, by default a tenth in each batch. ``SharedBatch`` plays every report.
    asked : {"every round", "once", "either"}
        A batch of fewer people has no less noise, so by default everybody is in each of them.

    Raises
    ------
    InputError
        A cohort of another kind: its claim would be another.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(4000), [0] * 3200 + [3] * 800, (2, 2))
    >>> released = TwoServers().release(people, 1.0, np.random.default_rng(1))
    >>> released.density.round(1).tolist(), str(released.claim)[:44]
    ([[0.8, 0.0], [0.0, 0.2]], 'distributed differential privacy, epsilon 1,')
    """

    name: ClassVar[str] = "two-servers"
    cohort: Batch = SOME_FAIL
    asked: Asked = "every round"

    def __post_init__(self) -> None:
        super().__post_init__()
        instance("cohort", self.cohort, Batch)
