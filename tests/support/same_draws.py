"""Commands that draw the same in every run, where the device itself has no seed.

What a test says of the files of a simulated collection must not hold by luck: of reports that are
drawn anew each time a field's chains disagree now and then, and a command warns. The samplers that
are replaced have tests of their own (``tests/client``: ``test_kernels.py``, ``test_sampling.py``,
``test_cipher_entropy.py``), and ``tests/ldpspatial/collecting/test_simulation.py`` plays on them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from client_sdk import ResponseTable, kernels

Ints = NDArray[np.int64]
SEED = 20


@contextmanager
def same_draws() -> Iterator[None]:
    """Seed, each in its turn, the generators without a seed and the samplers of reports."""
    generator, turns = np.random.default_rng, count()

    def seeded(seed: Any = None) -> np.random.Generator:
        return generator([SEED, next(turns)] if seed is None else seed)

    def randomize_many(table: ResponseTable, rows: ArrayLike, cols: ArrayLike) -> tuple[Ints, Ints]:
        return kernels.draw_many(table, rows, cols, seeded().bytes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", seeded)
        patch.setattr(kernels, "randomize_many", randomize_many)
        yield
