"""Estimators by name, and the function that recovers a map with one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import takes
from ldpspatial.errors import InputError
from ldpspatial.estimation.em import EM, QUICK, Smoothing
from ldpspatial.estimation.field.estimator import FIELD, MAP_ALONE, Field
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.estimation.robust import ROBUST, Robust
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.estimation.stopping import STOPPING_RULES, StoppingRule, is_stopping_rule
from ldpspatial.extensions import extension, extension_names
from ldpspatial.validate import callback, instance, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ENTRY_POINTS = "ldpspatial.estimators"  # group; each leads to an Estimator or its class
# Every name that the command line, its help, its completion and files know.
ESTIMATORS: Mapping[str, type[Estimator]] = MappingProxyType(
    {
        FIELD: Field,
        ROBUST: Robust,
        MAP_ALONE: Field,
        **dict.fromkeys((QUICK, *STOPPING_RULES), EM),
    }
)
RULES = tuple(ESTIMATORS)
DEFAULT = FIELD  # wherever it takes the channel

Rule = str | StoppingRule | Estimator


def estimate(
    channel: Channel,
    counts: ArrayLike,
    rule: Rule | None = None,
    smoothing: "str | Smoother | None" = None,
    max_iterations: int | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Recover the density of positions from counts of reports.

    Parameters
    ----------
    channel : Channel
        For a disk mechanism ``StampChannel(collection.table)``.
    counts : array of whole numbers >= 0
        Shaped like ``channel.support``, or the (N,) counts in the table's index order.
    rule : str, StoppingRule or Estimator, optional
        By default "field"; "em" with a smoothing or a limit of iterations, which only that one
        takes, and where reports are sets or the channel is too large.
        "field": :class:`Field`, a Bayesian model with samples of what the reports leave open, in
        seconds on any grid. "robust": :class:`Robust`, the same without what the check of the fit
        takes for forged. "map-alone": the field's map in about two seconds, without samples.
        "em": a quick look, :class:`EM` that stops where "scaled" does.
        "scaled", "likelihood", "published" or a StoppingRule: :class:`EM` with that rule.
        Or another estimator: the name of an entry point, ``module:Name``, or the object itself,
        which brings its own choices.
    smoothing : None, "binomial", "five-point" or a function, optional
        Smooth after each step of EM (EMS).
    max_iterations : int >= 1, optional
        An estimate that stops here says ``converged=False``; 10,000 by default.
    progress : callable (step, log-likelihood), optional

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Counts of a wrong shape, negative, fractional or not finite, none at all, more than 2^53
        in all, or in a cell that the channel cannot report; another bad argument, or a choice that
        the estimator brings itself.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> estimate(channel, counts).density.trace() > 0.9
    True
    """
    estimator = estimator_for(channel, rule, smoothing, max_iterations)
    return fitted(estimator, channel, counts, progress)


def estimator_for(
    channel: Channel,
    rule: Rule | None,
    smoothing: "str | Smoother | None" = None,
    max_iterations: int | None = None,
) -> Estimator:
    """Return the estimator that is meant for a channel; arguments and errors as in estimate."""
    if rule is None:
        by_em = smoothing is not None or max_iterations is not None or not takes(channel)
        rule = QUICK if by_em else DEFAULT
    return find_estimator(rule, smoothing, max_iterations)


def fitted(
    estimator: Estimator, channel: Channel, counts: ArrayLike, progress: Progress | None = None
) -> Estimate:
    """Return what an estimator, which may be of another package, makes of counts.

    Raises
    ------
    InputError
        That is no Estimate; or as in :func:`estimate`.
    """
    callback("progress", progress)
    found = estimator.fit(channel, counts, progress)
    return instance(f"what rule {estimator.name} returns", found, Estimate)


def find_estimator(
    rule: object, smoothing: "str | Smoother | None" = None, max_iterations: int | None = None
) -> Estimator:
    """Return the estimator that is meant; arguments and errors as in :func:`estimate`."""
    limit = 10_000 if max_iterations is None else max_iterations
    if is_stopping_rule(rule):
        return EM(rule, smoothing, limit)  # type: ignore[arg-type]
    if isinstance(rule, str) and rule in ESTIMATORS:
        return ESTIMATORS[rule].named(rule, smoothing, limit)
    if isinstance(rule, Estimator):
        found = rule
    elif isinstance(rule, str):
        found = _extension(rule)
    else:
        raise _unknown(rule)
    found.check_smoothing(smoothing)
    if max_iterations is not None:
        raise InputError(
            f"max_iterations must be left out (None) with rule {found.name}, which brings its own, "
            f"got {shown(max_iterations)}"
        )
    return found


def estimator_names() -> list[str]:
    """Return the names of all estimators, those of other packages last; none is loaded."""
    return [*RULES, *extension_names(ENTRY_POINTS, RULES)]


def restored(name: str, facts: Mapping[str, Any]) -> "tuple[Estimator, DataclassInstance | None]":
    """Return the estimator of a file and what it found; :class:`Lost` where only its maker has it.

    Arguments and errors are those of :meth:`Estimator.restored`. A file never says which module to
    import: names are those of this package and of entry points.
    """
    kind = ESTIMATORS.get(name)
    if kind is None and name in extension_names(ENTRY_POINTS, RULES):
        try:
            kind = type(_extension(name))
        except InputError:  # its package is broken, and the map can be read without it
            kind = None
    found = None if kind is None else kind.restored(name, facts)
    if found is None:
        told = Smoothing(str(facts["smoothing"])) if "smoothing" in facts else None
        found = Lost(name), told
    return found


@dataclass(frozen=True)
class Lost(Estimator):
    """The estimator of a file that does not hold how to make it again.

    It is needed only to estimate again, which is refused.

    Attributes
    ----------
    called : str
        Its name in the file.
    """

    kind = "lost"

    called: str

    @property
    def name(self) -> str:
        """What the file calls it."""
        return self.called

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Refuse."""
        if self.called in STOPPING_RULES:
            why = "its smoothing is a function, which no file holds"
        else:
            why = "it is of another package, or has choices that are not in the file"
        raise InputError(
            f"rule {self.called!r} cannot be made again from the name in a file: {why}"
        )


def _extension(name: str) -> Estimator:
    """Return the estimator of an entry point, or of ``module:Name``."""
    found = extension(ENTRY_POINTS, "rule", name, Estimator)  # type: ignore[type-abstract]
    if found is None:
        raise _unknown(name)
    return found


def _unknown(rule: object) -> InputError:
    return InputError(
        f"rule must be one of {', '.join(estimator_names())}, module:Name, a StoppingRule or an "
        f"Estimator, got {shown(rule)}"
    )
