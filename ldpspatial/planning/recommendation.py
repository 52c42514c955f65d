"""What to collect with where nothing favours another choice: chosen without looking at any data."""

from typing import Literal, get_args, overload

from client_sdk import Collection, Grid
from ldpspatial.planning.grid_size import recommended_cells
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import DistributedLevels
from ldpspatial.release.level_sums import Aim
from ldpspatial.release.local import Disk, DiskAndSets
from ldpspatial.release.local.disks.disk_radius import FOR_USERS, disk_squared_radius
from ldpspatial.release.release import Release
from ldpspatial.validate import input_errors, one_of

MODELS = ("local", "distributed", "central")


@overload
def recommended(
    cells: int,
    epsilon: float,
    n_users: int,
    model: Literal["local"] = "local",
    aim: Literal["distance"] = "distance",
) -> Disk: ...


@overload
def recommended(
    cells: int, epsilon: float, n_users: int, model: str = "local", aim: Aim = "distance"
) -> Release: ...


def recommended(
    cells: int, epsilon: float, n_users: int, model: str = "local", aim: Aim = "distance"
) -> Release:
    """Return the release to take for this grid, epsilon and number of users, whoever is trusted.

    - "local", nobody: a plain disk whose real radius minimises a linearised W2 risk
      (:mod:`ldpspatial.release.local.disks.disk_radius`), and a Bayesian field as the estimate
      (:mod:`ldpspatial.estimation.field`). For single cells only some of the people report by it,
      and the others by sets of cells (:mod:`ldpspatial.release.local.disk_and_sets`).
    - "distributed", enough of the other clients: secure sums on the levels of a quadtree, combined
      by least squares (:mod:`ldpspatial.release.level_sums`). Where two servers do not collude,
      :class:`ldpspatial.release.distributed.TwoServers` is the same on these (docs/two-servers.md).
    - "central", the server: the same of noisy sums.

    The choice looks at the arguments and nothing else, so it may be published. The two on levels
    choose where to begin by themselves: from the public number of clients, or from a noisy one.

    Parameters
    ----------
    cells : int in [1, 4096]
        Side of the square in cells;
        :func:`ldpspatial.planning.grid_size.recommended_cells` has a number for it.
    epsilon : number in [0.000001, 20]
        Privacy loss of one report.
    n_users : int in [1, 10^12]
        Users who will report, about: a factor of ten hardly matters.
    model : {"local", "distributed", "central"}
        Their claims differ in whom they protect against and in which neighbours they compare
        (docs/releases.md): equal epsilons are not equal privacy.
    aim : {"distance", "cells"}
        What the map is for: where people are, in W2 and by regions, or how many there are in single
        cells, in L1 and MSE. No one mechanism, and with noisy sums no one division of epsilon, is
        best for both (docs/recommended.md, docs/levels.md). What devices can be asked
        for by a collection is the disk alone.

    Returns
    -------
    Release
        For "local" a :class:`ldpspatial.release.local.Disk`, or a
        :class:`ldpspatial.release.local.DiskAndSets` for single cells.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> recommended(cells=64, epsilon=3.5, n_users=10_000)
    Disk(rule='field', squared_radius=112)
    >>> recommended(cells=64, epsilon=3.5, n_users=10_000, model="central")
    CentralLevels(aim='distance')
    """
    one_of("model", model, MODELS)
    one_of("aim", aim, get_args(Aim))
    square = disk_squared_radius(cells, epsilon, n_users)  # checks the arguments as well
    if model == "local":
        if aim == "cells":
            return DiskAndSets.chosen(cells, epsilon, n_users)
        return Disk(squared_radius=square)
    return CentralLevels(aim) if model == "central" else DistributedLevels(aim=aim)


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
