"""Adaptive hierarchical histogram: a prefix tree that grows where people are, round by round.

Users answer by the element of the current tree that they are in. The server sees noisy sums, splits
what clearly holds people, removes what cannot be told from noise, and asks again; the last round is
the result (Bagdasaryan et al. 2022, section 5). A decision gets as little as it needs: of people,
each of whom is asked once and spends all of epsilon, or, as in the paper, of the epsilon of people
who are all asked in every round.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np

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
    Shown,
    facts,
    grown,
    last_revealed,
)
from ldpspatial.release.distributed.adaptive.turns import Turns
from ldpspatial.release.distributed.sums.cohort import REALISTIC, Cohort
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
        b: a round that wants more than a b-th of the people, or of the epsilon, that remain gets
        all of it and is the last.
    rounds : int in [1, 1000]
        Most rounds.
    depth : int in [1, 14]
        Greatest depth of a node; that of a pixel if it is less.
    start : PrefixTree, optional
        Public, or the outcome of a run under a claim of its own; the four quadrants by default.
    schedule : {"scheduled", "even"}
        What calibration asks for, or as many people, or as much epsilon, for each of ``rounds``.
    threshold : "adaptive" or float > 0
        Two standard deviations of the noise that is still possible, or a fixed number of people.
    locations : Locations
        One position a user, or all of them (`ManyLocations`).
    asked : {"once", "every round"}
        Rounds ask disjoint cohorts, each user once at all of epsilon, or all users in every round,
        at parts of it, as in the paper.
    shown : {"positive", "threshold"}
        Counts that the map is made of: all above 0, or those from the last round's threshold on, as
        in the authors' public code, which leaves places empty where few people are.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    name: ClassVar[str] = "adaptive-hierarchical"
    model: ClassVar[Model] = "distributed"
    cohort: Cohort = REALISTIC
    calibration: float = 0.1
    expansion: float = 2.0
    rounds: int = 10
    depth: int = 10
    start: PrefixTree | None = None
    schedule: Literal["scheduled", "even"] = "scheduled"
    threshold: Literal["adaptive"] | float = "adaptive"
    locations: Locations = field(default_factory=OneLocation)
    asked: Literal["once", "every round"] = "once"
    shown: Shown = "positive"

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
        one_of("asked", self.asked, ("once", "every round"))
        one_of("shown", self.shown, get_args(Shown))

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-DP for each user, all rounds together.

        One user's answer replaced by zeros changes the sum of one shard in each round that asks
        that user, by at most the sensitivity in L1. The tree of a round depends on sums seen before
        and on what is public. A user who is asked once spends epsilon in that round and nothing in
        any other: parallel composition, in which later rounds see earlier ones only through their
        noisy sums. Where everybody is asked in every round, what the rounds spend adds up to
        epsilon: basic composition of adaptively chosen queries (Dwork and Roth 2014, section 3.5).
        """
        return self._claim(epsilon, None)

    def _claim(self, epsilon: float, clients: int | None) -> PrivacyClaim:
        first = "" if self.start is None else " and the tree of the first round"
        public = f"the square and its pixels, all parameters{first} are public"
        if self.asked == "once":
            claim = self.cohort.claim(epsilon)
            rounds: tuple[str, ...] = (
                f"each user is asked in one of at most {self.rounds} rounds, in one shard of it; "
                "who is asked when does not depend on the data, and is public",
            )
        else:
            claim = self.cohort.claim(epsilon, clients=clients)
            rounds = (
                f"at most {self.rounds} rounds composed, each user in one shard of each round",
            )
        return replace(claim, conditions=(*claim.conditions, *rounds, public, TAKING_PART))

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run; the density is that of the last round of which a sum was seen.

        Warns (`client_sdk.DesignWarning`) where the modulus may be too small for the sums.
        """
        trace = self.rounds_of(users, epsilon, rng)
        final = last_revealed(trace)
        once = self.asked == "once"
        paid = [step.micro for step in trace]
        claim = self._claim((max(paid) if once else sum(paid)) / MICRO, len(users))
        return Released(final.density(self.shown), claim, facts(trace, once))

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
            len(users),
            answers,
            lambda step: grown(step.tree, step.counts, step.threshold, self.depth),
            epsilon,
            rng,
        )

    def planned_for(self, length: int) -> tuple[int, int]:
        """Return the weight of a person and the sensitivity that a turn is planned for.

        Its epsilon or people and its threshold follow from them; its noise is that of the answers.
        """
        return self.locations.scale, self.locations.sensitivity(length)

    def ask(
        self,
        shape: tuple[int, int],
        clients: int,
        answers: Answers,
        grow: Callable[[Round], PrefixTree],
        epsilon: float,
        rng: np.random.Generator,
        entries: int = 1,
    ) -> tuple[Round, ...]:
        """Ask round after round; the caller says what is answered and how the tree grows.

        An answer has ``entries`` for each element of the tree.
        """
        turns = Turns(self, shape, clients, epsilon, grow, entries)
        # Who is asked when is drawn, and so says nothing of anybody's place.
        order = rng.permutation(clients) if self.asked == "once" else None
        while turn := turns.next():
            vectors = answers(turn.tree, rng)
            if order is not None:
                members, order = np.split(order, [turn.people])
                vectors = vectors[members]
            turns.take(self.cohort.sum(vectors, turn.micro / MICRO, turn.sensitivity, rng))
        if any(step.may_wrap for step in turns.trace):
            warnings.warn(
                f"a sum may have left the range of {self.cohort.bits} bits: the map may be wrong",
                DesignWarning,
                stacklevel=2,
            )
        return tuple(turns.trace)
