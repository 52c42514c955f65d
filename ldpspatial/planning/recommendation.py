"""What to collect with where nothing favours another choice: chosen without looking at any data."""

from client_sdk import Collection, Grid
from ldpspatial.planning.disk_radius import disk_squared_radius
from ldpspatial.planning.grid_size import FOR_USERS, recommended_cells
from ldpspatial.release.local import Disk
from ldpspatial.validate import input_errors


def recommended(cells: int, epsilon: float, n_users: int) -> Disk:
    """Return the local release that measured best for this grid, epsilon and number of users.

    A plain disk whose real radius minimises a linearised W2 risk
    (:mod:`ldpspatial.planning.disk_radius`), and a Bayesian field as the estimate
    (:mod:`ldpspatial.estimation.field`). The choice looks at the three arguments
    and nothing else, so it may be published; the estimate looks at the reports and nothing else.

    Parameters
    ----------
    cells : int in [1, 4096]
        Side of the square in cells;
        :func:`ldpspatial.planning.grid_size.recommended_cells` has a number for it.
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
    >>> recommended(cells=64, epsilon=3.5, n_users=10_000)
    Disk(rule='field', squared_radius=135)
    """
    return Disk(squared_radius=disk_squared_radius(cells, epsilon, n_users))


@input_errors()
def recommended_collection(
    name: str,
    lat: float,
    lon: float,
    side_m: float,
    epsilon: float,
    n_users: int = FOR_USERS,
    max_reports: int = 1,
) -> Collection:
    """Return the collection to take where nothing favours another one.

    Parameters
    ----------
    name : str
        What people call it.
    lat, lon : float
        Centre of the square in degrees. Choose it a little larger than the area that matters:
        devices outside of the square report from its edge.
    side_m : float
        Side of the square in metres.
    epsilon : number in [0.000001, 20]
        Privacy loss of one report.
    n_users : int in [1, 10^12]
        Users who will report, about: a factor of ten hardly matters.
    max_reports : int
        Reports that one device may give.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> town = recommended_collection("noon in town", 48.0, 11.0, 12_000, epsilon=3.5)
    >>> town.grid.cells, town.table.mechanism
    (64, 'disk')
    """
    cells = recommended_cells(n_users, side_m)
    square = disk_squared_radius(cells, epsilon, n_users)
    grid = Grid.from_center(lat, lon, side_m, cells)
    return Collection.create(
        name, grid, epsilon, "disk", max_reports=max_reports, squared_radius=square
    )
