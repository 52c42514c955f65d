"""The default release, where nothing favours another: chosen without looking at any data."""

from ldpspatial.planning.disk_radius import disk_squared_radius
from ldpspatial.release.local import Disk


def recommended(cells: int, epsilon: float, n_users: int) -> Disk:
    """Return the local release that measured best for this grid, epsilon and number of users.

    A plain disk whose real radius minimises a linearised W2 risk
    (:mod:`ldpspatial.planning.disk_radius`), and an estimate as smooth as cross-validation on the
    reports finds it (:mod:`ldpspatial.estimation.sieve`). The choice looks at the three arguments
    and nothing else, so it may be published; the estimate looks at the reports and nothing else.

    Parameters
    ----------
    cells : int in [1, 4096]
        Side of the square in cells.
    epsilon : number in [0.000001, 20]
        Privacy loss of one report.
    n_users : int in [1, 10^12]
        Users who will report, about: a factor of ten hardly matters.

    Returns
    -------
    Disk
        A release: local, epsilon-LDP per user.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> recommended(cells=15, epsilon=3.5, n_users=10_000)
    Disk(rule='cross-validated', squared_radius=5)
    """
    return Disk(squared_radius=disk_squared_radius(cells, epsilon, n_users))
