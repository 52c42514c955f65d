"""Turns: how many an adaptive histogram asks next, by which tree, and what comes of the answers.

It decides from noisy sums and public numbers alone, without drawing anything. So a simulation and a
server that collects its sums from devices follow the same rule, and a server that was stopped goes
on by handing it the sums that it has kept.
"""

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import Round
from ldpspatial.release.distributed.schedule import (
    Budget,
    may_wrap,
    split_threshold,
    wanted_epsilon,
    wanted_people,
)
from ldpspatial.release.distributed.sums.cohort import NoisySum
from ldpspatial.validate import MICRO

if TYPE_CHECKING:  # which asks by turns
    from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical


class Turn(NamedTuple):
    """What is asked next.

    Attributes
    ----------
    tree : PrefixTree
    people : int
        How many are asked.
    micro : int
        Epsilon of the answer in millionths.
    length : int
        Of an answer.
    sensitivity : int
        Largest L1 norm of an answer.
    """

    tree: PrefixTree
    people: int
    micro: int
    length: int
    sensitivity: int


class Turns:
    """The turns of one run.

    Parameters
    ----------
    histogram : AdaptiveHierarchical
    shape : (rows, columns)
        Of the map.
    clients : int
        Users of all turns together.
    epsilon : float > 0
        Of each user.
    grow : callable, Round -> PrefixTree
        How a tree grows.
    entries : int
        Entries of an answer for each element of the tree.

    Attributes
    ----------
    trace : list of Round
        What was seen.
    people : int
        Who can still be asked: all users, less those who were asked where each is asked once.

    Raises
    ------
    InputError
        Epsilon below a millionth, or a first tree of another map.
    """

    def __init__(
        self,
        histogram: "AdaptiveHierarchical",
        shape: tuple[int, int],
        clients: int,
        epsilon: float,
        grow: Callable[[Round], PrefixTree],
        entries: int = 1,
    ) -> None:
        start = histogram.start
        if start is not None and start.shape != shape:
            raise InputError(f"start must be a tree of the map {shape}, got {start.shape}")
        self.trace: list[Round] = []
        self._histogram = histogram
        self._clients = clients
        self.people = clients
        self._epsilon = epsilon
        self._budget = Budget(epsilon)
        self._grow = grow
        self._entries = entries
        self._tree = PrefixTree.quadrants(shape) if start is None else start
        self._added = True
        self._turn: Turn | None = None

    def next(self) -> Turn | None:
        """Return what is asked now; None where the run is over."""
        if self._turn is None and self._budget.micro and self.people:
            self._turn = self._planned()
        return self._turn

    def take(self, seen: NoisySum) -> Round:
        """Take the sums that the turn came to, and go on to the next.

        Parameters
        ----------
        seen : NoisySum
            ``clients`` is how many were asked in the end.

        Raises
        ------
        InputError
            No turn is open, or these are not its sums.
        """
        turn = self._turn
        if turn is None or len(seen.counts) != turn.length or not 1 <= seen.clients <= self.people:
            raise InputError("seen must be the sums of the turn that is asked now")
        self._turn = None
        if self._histogram.asked == "once":
            # Whoever is not asked in the last turn is not asked at all.
            self.people = 0 if turn.people == self.people else self.people - seen.clients
        step = self.round_of(turn, seen)
        self.trace.append(step)
        if step.remaining and step.survivors:  # without survivors nothing was learnt
            after = self._grow(step)
            self._added = not after.nodes <= turn.tree.nodes
            self._tree = after
        return step

    def _planned(self) -> Turn:
        """Pay for a turn: in people who are asked once, or in everybody's epsilon."""
        histogram = self._histogram
        length = self._entries * len(self._tree)
        sensitivity = histogram.locations.sensitivity(length)
        law = histogram.cohort, *histogram.planned_for(length)
        # Where no node was added there is nothing new to ask: this turn gets the rest.
        last = not self._added or len(self.trace) + 1 == histogram.rounds
        if histogram.asked == "once":
            people = self.people
            if histogram.schedule == "even":
                wanted, needed = self._clients / histogram.rounds, 0.0
            else:
                epsilon = self._budget.micro / MICRO
                wanted = wanted_people(histogram.calibration, epsilon, length, people, *law)
                needed = histogram.expansion * wanted
            if not last and needed <= people:
                people = min(max(ceil(wanted), 1), people)
            return Turn(self._tree, people, self._budget.micro, length, sensitivity)
        if histogram.schedule == "even":
            wanted, needed = self._epsilon / histogram.rounds, 0.0
        else:
            wanted = wanted_epsilon(histogram.calibration, self._clients, length, *law)
            needed = histogram.expansion * wanted
        everything = last or needed * MICRO > self._budget.micro
        micro = self._budget.pay_all() if everything else self._budget.pay(wanted)
        return Turn(self._tree, self.people, micro, length, sensitivity)

    def round_of(self, turn: Turn, seen: NoisySum) -> Round:
        """Return what was seen, with the threshold for the least noise that is still possible."""
        histogram = self._histogram
        scale = histogram.locations.scale
        law = histogram.cohort, *histogram.planned_for(turn.length)
        if histogram.asked == "once":
            # Most people whom a turn can still ask, this one or the rest.
            best, micro = max(seen.clients, self.people), turn.micro
            remaining = self._budget.micro if self.people else 0
        else:
            # The next turn may get all that remains.
            best, micro = seen.clients, max(turn.micro, self._budget.micro)
            remaining = self._budget.micro
        if isinstance(histogram.threshold, str):
            threshold = split_threshold(best, micro / MICRO, *law) * (seen.clients / best)
        else:
            threshold = histogram.threshold * (seen.clients / self._clients)
        return Round(
            turn.tree,
            seen.counts / scale,
            turn.micro,
            remaining,
            threshold,
            seen.deviation / scale,
            seen.survivors,
            seen.clients,
            best,
            may_wrap(seen.clients, turn.micro / MICRO, histogram.cohort, scale, turn.sensitivity),
        )
