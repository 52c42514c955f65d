"""PrivacyClaim: what is promised, to whom, and between which inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp
from typing import Literal, get_args

from ldpspatial.errors import InputError
from ldpspatial.validate import instance, number_in, one_of

Model = Literal["local", "distributed", "central", "none"]
Unit = Literal["report", "trajectory", "user"]
Neighbours = Literal["replace", "zero", "add or remove"]

MODELS = get_args(Model)
UNITS = get_args(Unit)

TAKING_PART = "who has a position in the map is public: others take no part"

SAME_LOCAL_PRIVACY = "local privacy equal to that of"  # what follows: whose, and at which epsilon

ONE_MECHANISM = "one mechanism, fixed beforehand, draws each report by itself"

NEIGHBOURS: Mapping[Neighbours, str] = {
    "replace": "one user's data replaced by any other",
    "zero": "one user's report replaced by zeros, the number of users public",
    "add or remove": "one user added or removed",
}

MOST_EXPONENT = 700.0  # exp overflows from 710 on; from here on delta is taken for 1


@dataclass(frozen=True)
class PrivacyClaim:
    """What a release promises, to whom and between which inputs.

    Two claims can be compared only when their unit and neighbouring relation are the same; see
    :meth:`under_replacement`.

    Attributes
    ----------
    model : {"local", "distributed", "central", "none"}
        Who sees data before noise: nobody; nobody unless clients and server collude beyond the
        assumptions; the server; everybody.
    epsilon : float in [0, inf]
        Infinite where nothing is promised.
    delta : float in [0, 1]
    unit : {"report", "trajectory", "user"}
        How much of a person's data the claim protects as a whole.
    neighbours : {"replace", "zero", "add or remove"}
        Which two inputs must be hard to tell apart (NEIGHBOURS spells them out).
    notion : str
        "differential privacy", or another notion, which is not comparable with it: under
        "geo-indistinguishability" the loss between two positions is epsilon times their distance.
    distance : str
        Unit of length of that distance, "cell" or "metre"; empty under differential privacy.
    conditions : tuple of str
        What the claim rests on, in words.

    Raises
    ------
    InputError
        A field breaks its rule: what is no claim gets into no table.
    """

    model: Model
    epsilon: float
    delta: float = 0.0
    unit: Unit = "user"
    neighbours: Neighbours = "replace"
    notion: str = "differential privacy"
    distance: str = ""
    conditions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("model", self.model, MODELS)
        object.__setattr__(self, "epsilon", number_in("epsilon", self.epsilon, "[0, inf]"))
        object.__setattr__(self, "delta", number_in("delta", self.delta, "[0, 1]"))
        one_of("unit", self.unit, UNITS)
        one_of("neighbours", self.neighbours, NEIGHBOURS)
        instance("notion", self.notion, str)
        instance("distance", self.distance, str)
        for condition in instance("conditions", self.conditions, tuple):
            if not isinstance(condition, str):
                raise InputError(
                    f"conditions must be texts, got {type(condition).__name__} among them"
                )

    def under_replacement(self) -> "PrivacyClaim":
        """Return what the claim implies when one user's data are replaced by any other.

        Replacing is removing and adding: by group privacy (Dwork and Roth 2014, section 2.3) twice
        epsilon, and delta (1 + e^epsilon) times. A claim under replacement is returned as it is.

        Examples
        --------
        >>> PrivacyClaim("central", 1.0, neighbours="add or remove").under_replacement().epsilon
        2.0
        """
        if self.neighbours == "replace":
            return self
        delta = self.delta
        if delta:
            # A delta of 1 allows everything: more of it says no more.
            tame = self.epsilon <= MOST_EXPONENT
            delta = min(delta * (1 + exp(self.epsilon)), 1.0) if tame else 1.0
        return replace(self, epsilon=2 * self.epsilon, delta=delta, neighbours="replace")

    def __str__(self) -> str:
        if self.model == "none":
            return "no privacy"
        loss = f"epsilon {self.epsilon:.6g}" + (f", delta {self.delta:.2g}" if self.delta else "")
        loss += f" per {self.distance}" if self.distance else ""
        return f"{self.model} {self.notion}, {loss}, per {self.unit}, {NEIGHBOURS[self.neighbours]}"
