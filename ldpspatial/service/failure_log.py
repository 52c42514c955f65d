"""Tells the operator of failures without filling the log with one line a request."""

import logging
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)
AGAIN_S = 60.0  # the same failure is told again after this time, with how often it came


class FailureLog:
    """What failed, once a minute.

    Parameters
    ----------
    clock : callable
        Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._told = ""
        self._again_at = 0.0
        self._untold = 0

    def tell(self, failure: str) -> None:
        """Log a failure, unless it was logged a moment ago."""
        now = self._clock()
        if failure == self._told and now < self._again_at:
            self._untold += 1
            return
        if self._untold:
            LOG.error("%s (and %d times since)", self._told, self._untold)
        LOG.error("%s", failure)
        self._told = failure
        self._again_at = now + AGAIN_S
        self._untold = 0

    def recovered(self) -> None:
        """Log that the store takes reports again; what fails next is told at once."""
        LOG.warning("the store takes reports again")
        self._told = ""
        self._untold = 0
