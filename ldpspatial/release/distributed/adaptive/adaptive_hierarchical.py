"""Adaptive hierarchical histogram: a prefix tree that grows where people are, round by round.

The same users answer every round, each by the element of the current tree that they are in. The
server sees noisy sums, splits what clearly holds people, removes what cannot be told from noise,
and asks again, with as little epsilon as the decision needs; what is left goes to the last round,
which is the result (Bagdasaryan et al. 2022, section 5).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from client_sdk import DesignWarning
from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import MAX_DEPTH
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import TAKING_PART, Model, PrivacyClaim
from ldpspatial.release.distributed._checks import check_clients
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import (
    MAX_ROUNDS,
    Answers,
    Locations,
    OneLocation,
    Round,
    facts,
    grown,
    last_revealed,
)
from ldpspatial.release.distributed.schedule import (
    Budget,
    may_wrap,
    split_threshold,
    wanted_epsilon,
)
from ldpspatial.release.distributed.sums.cohort import Cohort
from ldpspatial.release.release import Release, Released
from ldpspatial.validate import MICRO, instance, number_in, one_of, whole_number


@dataclass(frozen=True)
class AdaptiveHierarchical(Release):
    """Distributed DP map by an adaptive hierarchical histogram.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus.
    calibration : float > 0
        c, how large the noise may be beside the mean count of an element. More goes deeper with
        less certain splits, which suits concentrated maps.
    expansion : float >= 1
        b: a round that wants more than a b-th of what remains gets all of it and is the last.
    rounds : int in [1, 1000]
        Most rounds.
    depth : int in [1, 14]
        Greatest depth of a node; that of a pixel if it is less.
    start : PrefixTree, optional
        Public, or the outcome of a run under a claim of its own; the four quadrants by default.
    schedule : {"scheduled", "even"}
        What calibration asks for, or the same epsilon for each of ``rounds``.
    threshold : "adaptive" or float > 0
        Two standard deviations of the noise that is still possible, or a fixed number of people.
    locations : Locations
        One position a user, or all of them (`ManyLocations`).

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    name: ClassVar[str] = "adaptive-hierarchical"
    model: ClassVar[Model] = "distributed"
    cohort: Cohort = field(default_factory=Cohort)
    calibration: float = 0.1
    expansion: float = 2.0
    rounds: int = 10
    depth: int = 10
    start: PrefixTree | None = None
    schedule: Literal["scheduled", "even"] = "scheduled"
    threshold: Literal["adaptive"] | float = "adaptive"
    locations: Locations = field(default_factory=OneLocation)

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, 1, MAX_ROUNDS)
        whole_number("depth", self.depth, 1, MAX_DEPTH)
        number_in("expansion", self.expansion, "[1, inf]")
        number_in("calibration", self.calibration, "(0, inf]")
        instance("cohort", self.cohort, Cohort)
        if self.start is not None:
            instance("start", self.start, PrefixTree)
        one_of("schedule", self.schedule, ("scheduled", "even"))
        if not isinstance(self.threshold, str):
            number_in("threshold", self.threshold, "(0, inf]")
        elif self.threshold != "adaptive":
            raise InputError(f"threshold must be 'adaptive' or a number, got {self.threshold!r}")
        instance("locations", self.locations, Locations)  # type: ignore[type-abstract]

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-DP for each user, all rounds together.

        One user's answers replaced by zeros change the sum of one shard in each round, by at most
        the sensitivity in L1. The tree of a round depends on sums seen before and on what is
        public, and what the rounds spend adds up to epsilon: basic composition of adaptively chosen
        queries (Dwork and Roth 2014, section 3.5).
        """
        return self._claim(epsilon, None)

    def _claim(self, epsilon: float, clients: int | None) -> PrivacyClaim:
        claim = self.cohort.claim(epsilon, clients=clients)
        first = "" if self.start is None else " and the tree of the first round"
        conditions = (
            f"at most {self.rounds} rounds composed, each user in one shard of each round",
            f"the square and its pixels, all parameters{first} are public",
            TAKING_PART,
        )
        return replace(claim, conditions=claim.conditions + conditions)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run; the density is that of the last round of which a sum was seen.

        Warns (`client_sdk.DesignWarning`) where the modulus may be too small for the sums.
        """
        trace = self.rounds_of(users, epsilon, rng)
        final = last_revealed(trace)
        claim = self._claim(sum(step.micro for step in trace) / MICRO, len(users))
        return Released(final.tree.density(final.counts), claim, facts(trace))

    def rounds_of(
        self, users: UserCells, epsilon: float, rng: np.random.Generator
    ) -> tuple[Round, ...]:
        """Run and return every round.

        Parameters
        ----------
        users : UserCells
        epsilon : float > 0
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            A bad argument, epsilon below a millionth, or users on another map than ``start``.
        """
        check_clients(users, epsilon, rng)
        answers = self.locations.of(users, rng)
        return self.ask(
            users.shape,
            answers,
            lambda step: grown(step.tree, step.counts, step.threshold, self.depth),
            epsilon,
            rng,
        )

    def ask(
        self,
        shape: tuple[int, int],
        answers: Answers,
        grow: Callable[[Round], PrefixTree],
        epsilon: float,
        rng: np.random.Generator,
    ) -> tuple[Round, ...]:
        """Ask round after round; the caller says what is answered and how the tree grows."""
        tree = PrefixTree.quadrants(shape) if self.start is None else self.start
        if tree.shape != shape:
            raise InputError(f"start must be a tree of the map {shape}, got {tree.shape}")
        budget = Budget(epsilon)
        added = True
        trace: list[Round] = []
        while budget.micro:
            # Where no node was added there is nothing new to ask: this round gets the rest.
            last = not added or len(trace) + 1 == self.rounds
            step = self._round(tree, answers(tree, rng), last, epsilon, budget, rng)
            trace.append(step)
            if budget.micro and step.survivors:  # without survivors nothing was learnt
                after = grow(step)
                added = not after.nodes <= tree.nodes
                tree = after
        if any(step.may_wrap for step in trace):
            warnings.warn(
                f"a sum may have left the range of {self.cohort.bits} bits: the map may be wrong",
                DesignWarning,
                stacklevel=2,
            )
        return tuple(trace)

    def _round(
        self,
        tree: PrefixTree,
        vectors: sparse.csr_array,
        last: bool,
        epsilon: float,
        budget: Budget,
        rng: np.random.Generator,
    ) -> Round:
        """Pay for one round and ask."""
        clients, length = vectors.shape
        scale = self.locations.scale
        sensitivity = self.locations.sensitivity(length)
        law = self.cohort, scale, sensitivity
        if self.schedule == "even":
            wanted = epsilon / self.rounds
            needed = 0.0
        else:
            wanted = wanted_epsilon(self.calibration, clients, length, *law)
            needed = self.expansion * wanted
        everything = last or needed * MICRO > budget.micro
        micro = budget.pay_all() if everything else budget.pay(wanted)
        seen = self.cohort.sum(vectors, micro / MICRO, sensitivity, rng)
        threshold = self.threshold
        if threshold == "adaptive":
            # For the least noise that is still possible: the next round may get all that remains.
            threshold = split_threshold(clients, max(micro, budget.micro) / MICRO, *law)
        return Round(
            tree,
            seen.counts / scale,
            micro,
            budget.micro,
            threshold,
            seen.deviation / scale,
            seen.survivors,
            may_wrap(clients, micro / MICRO, *law),
        )
