"""Estimator and Estimate: what turns counts into a map, and its result, always of one type."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.validate import (
    density_array,
    instance,
    number_array,
    number_in,
    shown,
    true_or_false,
    whole_number,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Array = NDArray[np.float64]
Progress = Callable[[int, float], None]
Facts = Mapping[str, float | str]


class Estimator(ABC):
    """What turns counts of reports into a map; subclasses are frozen dataclasses of their choices.

    An estimator of another package is known to :func:`ldpspatial.estimate` and the command line by
    an entry point of the group ``ldpspatial.estimators``, or as ``module:Name``. One of this
    package has an entry in ``ESTIMATORS`` (:mod:`ldpspatial.estimation.estimate`).

    Attributes
    ----------
    name : str
        What files, tables and the command line call it.
    kind : str
        The method in a word: "em", "ems", "field".
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """What files, tables and the command line call it."""

    @abstractmethod
    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> "Estimate":
        """Recover the density of positions from counts of reports.

        Parameters
        ----------
        channel : Channel
        counts : array of whole numbers >= 0
            Shaped like ``channel.support``, or the (N,) counts in the order of its entries.
        progress : callable (step, log-likelihood), optional

        Raises
        ------
        InputError
            The counts break a rule (:mod:`ldpspatial.estimation.counts`), or the estimator cannot
            be used with this channel.
        """

    @classmethod
    def named(
        cls, name: str, smoothing: "str | Smoother | None", max_iterations: int
    ) -> "Estimator":
        """Return the estimator of a name of ``ESTIMATORS``, with its choices left as they are.

        Parameters
        ----------
        name : str
        smoothing, max_iterations
            As in :func:`ldpspatial.estimate`. What has no use for a limit ignores it.

        Raises
        ------
        InputError
            A smoothing, unless the class has another ``named`` that takes one.
        """
        found = cls()
        found.check_smoothing(smoothing)
        return found

    def check_smoothing(self, smoothing: object) -> None:
        """Refuse any smoothing: it is a choice of EM, and other estimators bring their own."""
        if smoothing is not None:
            raise InputError(
                f"smoothing must be left out (None) with rule {self.name}, which finds its own, "
                f"got {shown(smoothing)}"
            )

    @classmethod
    def restored(
        cls, name: str, facts: Mapping[str, Any]
    ) -> "tuple[Estimator, DataclassInstance | None] | None":
        """Return the estimator of this name and what it found, from what a file holds.

        None if a file does not hold enough to make it again. Without a method of its own, a class
        without choices is made again, and what it found is left out; one with choices is not.

        Parameters
        ----------
        name : str
        facts : mapping
            As :attr:`Estimate.facts` had them.

        Raises
        ------
        ValueError, KeyError, TypeError
            The facts are not ones that this class finds.
        """
        # Whatever is no dataclass may have choices that nobody can list.
        return None if not is_dataclass(cls) or fields(cls) else (cls(), None)


@dataclass(frozen=True)
class Estimate:
    """A density with the path that led to it.

    Attributes
    ----------
    density : (d, d) array
        Non-negative, sums to 1; row 0 is the south, column 0 the west.
    log_likelihood : float
        Total log-likelihood of the counts in nats.
    iterations : int
        Steps taken.
    converged : bool
        False where a limit stopped it early.
    trace : tuple of float
        Log-likelihood at the start and after each step.
    channel : Channel
    counts : array
        Reports by output cell, shaped like ``channel.support``.
    estimator : Estimator
        What found it.
    details : dataclass or None
        What only this estimator reports.
    samples : (S, d, d) array or None
        Maps drawn from the posterior, where the estimator has one.
    of_all : float in (0, 1]
        Part of those who reported whom density and samples are of: 1 but for those of an area.
        Counts are of all.

    Raises
    ------
    InputError
        A field breaks its rule, as where the density is not shaped like the channel's input.
    """

    density: Array
    log_likelihood: float
    iterations: int
    converged: bool
    trace: tuple[float, ...] = field(repr=False)
    channel: Channel = field(repr=False)
    counts: Array = field(repr=False)
    estimator: Estimator
    details: "DataclassInstance | None" = None
    samples: Array | None = field(default=None, repr=False)
    of_all: float = 1.0

    def __post_init__(self) -> None:
        counts = check_counts(self.channel, self.counts)
        density = density_array("density", self.density, tuple(self.channel.input_shape))
        trace = instance("trace", self.trace, tuple)
        number_array("trace", trace, ("steps",), "[-inf, inf]")
        instance("estimator", self.estimator, Estimator)  # type: ignore[type-abstract]
        if self.details is not None and not _is_record(self.details):
            raise InputError(f"details must be a dataclass, got {type(self.details).__name__}")
        checked = {
            "density": density,
            "log_likelihood": number_in("log_likelihood", self.log_likelihood, "[-inf, inf]"),
            "iterations": whole_number("iterations", self.iterations, 0),
            "converged": true_or_false("converged", self.converged),
            "counts": counts,
            "samples": _samples(self.samples, density.shape),
            "of_all": number_in("of_all", self.of_all, "(0, 1]"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())

    @property
    def rule(self) -> str:
        """Name of the estimator."""
        return self.estimator.name

    @property
    def facts(self) -> Facts:
        """The details as numbers and texts by name, for files and tables."""
        return {} if self.details is None else asdict(self.details)


def _samples(samples: object, shape: tuple[int, ...]) -> Array | None:
    if samples is None:
        return None
    return number_array("samples", samples, ("maps", *shape), "[0, 1]")


def _is_record(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
