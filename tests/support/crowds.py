"""Crowds of people for tests of releases."""

import numpy as np

from ldpspatial.places.users import UserCells, cells_by_user


def crowd(users: int, side: int, seed: int, spread: float = 6.0) -> UserCells:
    """A town: most people near its centre."""
    rng = np.random.default_rng(seed)
    at = np.clip(rng.normal(side / 3, side / spread, (users, 2)).astype(int), 0, side - 1)
    return cells_by_user(np.arange(users), at[:, 0] * side + at[:, 1], (side, side))
