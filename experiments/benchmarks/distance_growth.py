"""How the time of an exact distance grows with the grid, and which part takes it."""

import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np

from experiments.benchmarks.distance_maps import draw_pair
from experiments.benchmarks.timing import Table
from experiments.generated import generated
from experiments.tables import DOCS
from ldpspatial import wasserstein

SIDES = (16, 32, 64, 128, 256)
SHOWN = ("white noise", "smooth field", "city", "mostly empty")


def growth() -> Table:
    """Time over the side of the grid, in docs/generated/wasserstein-growth.png too."""
    times = {
        name: [
            median(_seconds(name, side) for _ in range(3 if side < 256 else 1)) for side in SIDES
        ]
        for name in SHOWN
    }
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, seconds in times.items():
        axes.loglog(SIDES, seconds, marker="o", label=name)
    sides = np.array(SIDES, float)
    least = sides**2 * np.log(sides)
    scale = times["smooth field"][2] / least[2]
    axes.loglog(sides, scale * least, "k:", label="d² log d")
    axes.loglog(sides, scale * least[2] * (sides / 64) ** 3, "k--", label="d³")
    axes.set(xlabel="d (grid of d x d cells)", ylabel="seconds", title="Exact W2, proof included")
    axes.set_xticks(SIDES, [str(side) for side in SIDES])
    axes.xaxis.minorticks_off()  # their labels would lie over those of the sides
    axes.legend()
    figure.savefig(generated(DOCS, "wasserstein-growth.png"), dpi=120)
    plt.close(figure)
    rows = [
        [name, *(f"{1000 * s:.0f} ms" for s in seconds), f"{_slope(seconds):.1f}"]
        for name, seconds in times.items()
    ]
    header = ["class", *(f"d = {side}" for side in SIDES), "exponent of d from 64 to 256"]
    return header, rows


def parts() -> Table:
    """Share of the time in pricing, pivots, the proof and the rest."""
    rows = []
    for name in SHOWN:
        for side in (64, 128):
            spent: Counter[str] = Counter()
            multiscale = import_module("ldpspatial.metrics.exact.multiscale")
            pricing = import_module("ldpspatial.metrics.exact.pricing").SeparablePricing
            proof = import_module("ldpspatial.metrics.transport").Proof
            _seconds(name, side)
            with (
                patch.object(multiscale, "improve", _timed(multiscale.improve, spent, "pivots")),
                patch.object(pricing, "cheapest", _timed(pricing.cheapest, spent, "pricing")),
                patch.object(proof, "check", _timed(proof.check, spent, "proof")),
            ):
                total = _seconds(name, side)
            shares = [spent[part] / total for part in ("pricing", "pivots", "proof")]
            rows.append(
                [name, side, f"{total * 1000:.0f} ms"]
                + [f"{100 * share:.0f} %" for share in (*shares, 1 - sum(shares))]
            )
    return ["class", "d", "time", "pricing", "pivots", "proof", "rest"], rows


def _timed(call: Callable[..., Any], spent: Counter[str], part: str) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        answer = call(*arguments)
        spent[part] += time.perf_counter() - began  # type: ignore[assignment]
        return answer

    return timed


def _seconds(name: str, side: int) -> float:
    p, q = draw_pair(name, (side, side), 0)
    began = time.perf_counter()
    wasserstein(p, q)
    return time.perf_counter() - began


def _slope(seconds: list[float]) -> float:
    first = SIDES.index(64)
    last = SIDES.index(256)
    return float(np.log(seconds[last] / seconds[first]) / np.log(SIDES[last] / SIDES[first]))
