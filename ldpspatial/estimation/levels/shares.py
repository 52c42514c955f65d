"""How the people of nodes are shared by their children, given noisy sums: empirical Bayes.

Most people of a city are in few places, so a child's share is more often near nothing or near all
than a normal law has it. For nodes with four equal children the law of a share is learned from all
of them on a level: a mixture of normal laws of fixed centres and widths, whose weights maximise the
likelihood (expectation maximisation; Kiefer and Wolfowitz 1956 for mixtures in general). A sum is
taken as normal about the people in the child. Each child then has the mean of its posterior, which
leaves large shares as they are and takes from small ones what noise alone would make of nothing.

Where fewer nodes have four equal children, and for the nodes along a border that have not, shares
start as those of a uniform map, by area. What the sums say beyond is multiplied by v / (v + noise),
v the variance that shares have on this level beyond noise, learned from all nodes of the level by
moments, times the node's people squared.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 8  # of the moment equation for the variance of shares; it settles in three or four
FEWEST = 4  # nodes that a mixture is learned from
ALIKE = 0.06  # of a quarter, what the areas of equal children may differ by: 2 and 3 cells a side
# Of the mixture: centres and deviations of shares. The first is for children where nobody is.
CENTRES = np.array(
    [0, 0.02, 0.05, 0.09, 0.14, 0.2, 0.25, 0.3, 0.37, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
)
WIDTHS = np.array(
    [0.003, 0.01, 0.02, 0.025, 0.03, 0.03, 0.03, 0.03, 0.04, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]
)
EM_ROUNDS = 60
AT_LEAST = 0.2  # children that each part of the mixture is given beside those that it explains
LEARNED_FROM = 20_000  # children at most, of nodes taken evenly
TOGETHER = 1 << 16  # children whose posteriors are found at a time, to save memory


def shared(people: Array, shares: Array, sums: Array, variances: Array) -> Array:
    """Return the people of each child, shape (m, 4): not negative, those of the node in all.

    Parameters
    ----------
    people : (m,) array
        Of each node, at least 0.
    shares : (m, 4) array
        Of a uniform map; 0 where there is no child.
    sums, variances : (m, 4) arrays
        Of the children, and of their noise.
    """
    wanted = _drawn_to_uniform(people, shares, sums, variances)
    equal = (np.abs(shares - 0.25) <= ALIKE).all(1) & (people > 0)
    if np.count_nonzero(equal) >= FEWEST:
        wanted[equal] = _learned(people[equal], sums[equal], variances[equal])
    return nearest_shares(wanted, people, shares > 0)


def _learned(people: Array, sums: Array, variances: Array) -> Array:
    """Return posterior means of the people in each child, shape (m, 4)."""
    # Least squares given the node's people, and what noise is left in it.
    least = np.maximum(variances, 1e-18 * people[:, np.newaxis] ** 2)
    part = least / least.sum(1, keepdims=True)
    given = sums + part * (people - sums.sum(1))[:, np.newaxis]
    noise = least * (1 - part)
    seen = (given / people[:, np.newaxis]).ravel()
    error = (noise / people[:, np.newaxis] ** 2).ravel()
    weights = learned_weights(seen, error)
    means = [
        posterior_mean(seen[start : start + TOGETHER], error[start : start + TOGETHER], weights)
        for start in range(0, len(seen), TOGETHER)
    ]
    found: Array = np.concatenate(means).reshape(sums.shape) * people[:, np.newaxis]
    return found


def learned_weights(seen: Array, error: Array) -> Array:
    """Return the weights of the mixture of shares, which sum to 1.

    Parameters
    ----------
    seen : (n,) array
        Noisy shares, four of each node one after the other.
    error : (n,) array
        Variances of their noise, above 0.
    """
    step = max(-(-len(seen) // LEARNED_FROM), 1)
    taken = np.arange(len(seen)) // 4 % step == 0  # whole nodes: all quarters count alike
    likely = np.exp(_fit(seen[taken], error[taken]))
    weights = np.full(len(CENTRES), 1 / len(CENTRES))
    for _ in range(EM_ROUNDS):
        # Each share is told to the parts by how well they explain it: that, summed over shares.
        weights = weights * ((1 / (likely @ weights)) @ likely) + AT_LEAST
        weights /= weights.sum()
    return weights


def posterior_mean(seen: Array, error: Array, weights: Array) -> Array:
    """Return the mean of each share's posterior, shape (n,).

    Examples
    --------
    >>> even = np.full(len(CENTRES), 1 / len(CENTRES))
    >>> posterior_mean(np.array([0.04, 0.9]), np.array([1e-9, 1e-9]), even).round(3).tolist()
    [0.04, 0.9]
    """
    whose = weights * np.exp(_fit(seen, error))
    whose /= whose.sum(1, keepdims=True)
    trust = WIDTHS**2 / (WIDTHS**2 + error[:, np.newaxis])
    means = CENTRES + trust * (seen[:, np.newaxis] - CENTRES)
    found: Array = (whose * means).sum(1)
    return found


def _fit(seen: Array, error: Array) -> Array:
    """Return log likelihoods of each share by each part of the mixture, the best of each 0."""
    spread = WIDTHS**2 + error[:, np.newaxis]
    fit = -((seen[:, np.newaxis] - CENTRES) ** 2) / (2 * spread) - np.log(spread) / 2
    best: Array = fit - fit.max(1, keepdims=True)
    return best


def _drawn_to_uniform(people: Array, shares: Array, sums: Array, variances: Array) -> Array:
    """Return the linear estimate: beyond a uniform map, as much as noise leaves of what is seen."""
    number = (shares > 0).sum(1)
    beyond = sums - shares * sums.sum(1, keepdims=True)
    noise = variances.sum(1) / number
    square = people**2
    open_ = (number > 1) & (people > 0)
    # E[beyond^2] summed over k children is (k - 1) (noise + v people^2), but for unequal areas.
    found = (beyond**2).sum(1)[open_] / (number[open_] - 1)
    v = _spread(found, noise[open_], square[open_])
    kept = v * square / np.where(open_, v * square + noise, 1.0)
    wanted: Array = shares * people[:, np.newaxis] + kept[:, np.newaxis] * beyond
    return wanted


def _spread(found: Array, noise: Array, square: Array) -> float:
    """Return v >= 0 with E[found] = noise + v square, each node weighed by how much it tells."""
    v = 0.1
    for _ in range(ROUNDS if len(found) else 0):
        weight = square / (noise + v * square) ** 2
        v = max(float((weight * (found - noise)).sum() / (weight * square).sum()), 1e-12)
    return v


def nearest_shares(wanted: Array, people: Array, exists: NDArray[np.bool_]) -> Array:
    """Return the nearest numbers in each row that are not negative and sum to its people.

    Parameters
    ----------
    wanted : (m, k) array
    people : (m,) array
        At least 0.
    exists : (m, k) bool array
        Entries that may be positive, at least one a row.

    Examples
    --------
    >>> every = np.ones((1, 4), bool)
    >>> nearest_shares(np.array([[6.0, 5.0, 1.0, -2.0]]), np.array([9.0]), every).tolist()
    [[5.0, 4.0, 0.0, 0.0]]
    """
    entries = np.where(exists, wanted, -np.inf)
    ordered = -np.sort(-entries, axis=1)
    # What the first k of them are too much, each: the largest k for which all of them stay above.
    with np.errstate(invalid="ignore"):
        excess = (np.cumsum(ordered, axis=1) - people[:, np.newaxis]) / np.arange(
            1, ordered.shape[1] + 1
        )
        stays = (ordered > excess) & np.isfinite(ordered)
    last = np.maximum(stays.sum(1) - 1, 0)
    level = np.take_along_axis(excess, last[:, np.newaxis], 1)
    near = np.where(exists, np.maximum(np.where(exists, wanted, 0.0) - level, 0.0), 0.0)
    # People who are fewer than the last digit of what is wanted go where that is most.
    near = np.where(near.any(1, keepdims=True), near, entries == ordered[:, :1])
    # To the last digit: what rounding takes or adds would grow from level to level.
    total = near.sum(1, keepdims=True)
    scale = np.divide(people[:, np.newaxis], total, out=np.zeros_like(total), where=total > 0)
    found: Array = near * scale
    return found
