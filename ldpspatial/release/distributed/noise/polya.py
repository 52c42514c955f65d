"""Law of the noise: discrete Laplace, and the Polya shares that add up to it.

Discrete Laplace of parameter a in (0, 1) (:mod:`ldpspatial.privacy.discrete_laplace`) is X - Y of
two geometric variables, and these are sums of Polya variables: Polya(r, a) has
P(k) = r (r + 1) .. (r + k - 1) / k! a^k (1 - a)^r, and the r of independent ones add up.
a = exp(-epsilon / sensitivity) gives epsilon-DP (Bagdasaryan et al. 2022, section 4).
"""

from math import exp, expm1, inf, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import hyp2f1

from ldpspatial.release.distributed._checks import MAX_CLIENTS, MAX_SENSITIVITY
from ldpspatial.validate import positive, whole_number

Ints = NDArray[np.int64]


def privacy_loss(survivors: int, honest: int, epsilon: float, sensitivity: int = 1) -> float:
    """Return the epsilon of a sum of ``survivors`` noise shares that are made for ``honest``.

    With enough survivors it is epsilon: more noise neither adds to it nor takes from it. With
    fewer it is larger, which is why their sum is withheld: the noise has too sharp a peak at 0.
    The worst client adds 1 to each of ``sensitivity`` elements, so for vectors at least as long
    the value is attained, and for shorter ones it is a bound (docs/noise-shares.md, section 5).

    Parameters
    ----------
    survivors : int >= 0
    honest : int >= 1
    epsilon : float > 0
    sensitivity : int >= 1

    Returns
    -------
    float
        Infinite without survivors.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> [round(privacy_loss(v, 100, 1.0), 3) for v in (100, 95, 50)]
    [1.0, 1.048, 1.675]
    """
    most = whole_number("sensitivity", sensitivity, 1, MAX_SENSITIVITY)
    decay = positive("epsilon", epsilon) / most
    here = whole_number("survivors", survivors, 0, MAX_CLIENTS)
    share = here / whole_number("honest", honest, 1, MAX_CLIENTS)
    if share >= 1:
        return float(epsilon)
    if here == 0:
        return inf
    a = exp(-decay)
    # P(0) and P(1) of X - Y are sums of products of Polya probabilities: (1 - a)^(2 share) times
    # F(share, share; 1; a^2) and a share F(share, share + 1; 2; a^2).
    zero, one = (hyp2f1(share, share + k, 1 + k, a * a) for k in (0, 1))
    # ln P(0) / P(1), with decay = -ln a: the steepest step of the law, which every unit of the
    # sensitivity can cost once (docs/noise-shares.md, section 5).
    return float(most * (decay + log(zero / (share * one))))


def sum_of_shares(
    survivors: int, honest: int, decay: float, length: int, rng: np.random.Generator
) -> Ints:
    """Simulate the sum of the noise shares of ``survivors``, each made for ``honest``.

    X - Y, each Polya(survivors / honest, a), a = exp(-decay): a Poisson number whose mean has a
    Gamma distribution of SCALE a / (1 - a), not rate. X and Y have a mean each: of one mean, they
    would not be independent. With survivors == honest both are geometric.

    Returns
    -------
    (length,) int64 array
        In floating point, for simulation; clients draw exactly (`NoiseShare`).
    """
    a = exp(-decay)
    stop = -expm1(-decay)
    if survivors == honest:
        # numpy's geometric numbers begin at 1; the difference takes that away.
        return rng.geometric(stop, length) - rng.geometric(stop, length)
    means = rng.gamma(survivors / honest, a / stop, (2, length))
    difference: Ints = rng.poisson(means[0]) - rng.poisson(means[1])
    return difference
