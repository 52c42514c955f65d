"""What the central releases add noise by, replaced wherever it is used."""

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk.entropy import Entropy
from ldpspatial.release.central import central_release
from ldpspatial.release.central.trees import privtree

Ints = NDArray[np.int64]
WithNoise = Callable[[Ints, int, Entropy], Ints]
Crowded = Callable[[Ints, int, int, Entropy, privtree.Growth], NDArray[np.bool_]]


def replace_noise(patch: pytest.MonkeyPatch, other: WithNoise) -> None:
    """Let every release take its noisy sums from another function."""
    prefix = f"{central_release.__package__}."
    for name, module in list(sys.modules.items()):
        theirs = name.startswith(prefix) and module is not central_release
        if theirs and hasattr(module, "with_noise"):
            patch.setattr(module, "with_noise", other)


def replace_shape_noise(patch: pytest.MonkeyPatch, other: Crowded) -> None:
    """Let shapes learn from another function which nodes are divided."""
    patch.setattr(privtree, "crowded", other)


def recorded_spending(patch: pytest.MonkeyPatch) -> list[int]:
    """Return the millionths of epsilon that releases spend from now on, query by query."""
    spent: list[int] = []
    with_noise, crowded = central_release.with_noise, privtree.crowded

    def recorded(units: Ints, micro_epsilon: int, source: Entropy) -> Ints:
        spent.append(micro_epsilon)
        return with_noise(units, micro_epsilon, source)

    def divided(
        units: Ints, level: int, micro_epsilon: int, source: Entropy, growth: privtree.Growth
    ) -> NDArray[np.bool_]:
        if level == growth.first:  # all levels share what the shape of a tree may cost
            spent.append(micro_epsilon)
        return crowded(units, level, micro_epsilon, source, growth)

    replace_noise(patch, recorded)
    replace_shape_noise(patch, divided)
    return spent


def fixed_noise(
    patch: pytest.MonkeyPatch, width: int, seed: int
) -> tuple[Iterator[int], Iterator[int]]:
    """Let noise be even on [-width, width]; return what is drawn, for sums and for PrivTree's tree.

    Each is in the order of the draws, and to be read after them.
    """
    rng = np.random.default_rng(seed)
    drawn: tuple[list[int], list[int]] = [], []

    def sampler(into: list[int]) -> Callable[[int, int, int, Entropy], Ints]:
        def sample(size: int, numerator: int, denominator: int, source: Entropy) -> Ints:
            found = rng.integers(-width, width, size, endpoint=True)
            into.extend(found.tolist())
            return found

        return sample

    patch.setattr(central_release, "sample", sampler(drawn[0]))
    patch.setattr(privtree, "sample", sampler(drawn[1]))
    return iter(drawn[0]), iter(drawn[1])
