"""What the published distance hides: its floor, and pairs of mechanisms that it turns round."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from experiments.means import shown
from experiments.pairs import verdict
from experiments.papers.dam.mechanisms import UNIFORM, titled
from experiments.papers.dam.plays import Errors
from experiments.papers.dam.report import named
from experiments.papers.dam.settings import Row, Setting
from experiments.tables import markdown

Pair = tuple[str, str, str, Setting]  # data set, better and worse release by exact W2


def floor_table(errors: Errors, row: Row, label: str) -> str:
    """Return how far off the published distance takes the truth to be from itself."""
    lines = [
        [name, *(f"{errors.of(name, label, at, 'sinkhorn_self').mean():.3f}"
                 for at in row.settings)]
        for name in errors.names
    ]  # fmt: skip
    return markdown(["data", *(named(setting, row.against) for setting in row.settings)], lines)


def order_table(errors: Errors, row: Row) -> str:
    """Return, of the pairs of mechanisms that exact W2 tells apart, what becomes of their order."""
    lines = []
    for at in row.settings:
        pairs = list(told_apart(errors, [at]))
        kept = Counter(_by_sinkhorn(errors, pair) for pair in pairs)
        turned = sum(_turned(errors, pair) for pair in pairs)
        lines.append([named(at, row.against), sum(kept.values()), kept["lower"], kept["level"],
                      turned, kept["higher"]])  # fmt: skip
    header = ["", "pairs told apart by exact W2", "same order", "no longer told apart",
              "means turned round", "turned round at 95 %"]  # fmt: skip
    return markdown(header, lines)


def turned_table(errors: Errors, row: Row, most: int) -> str:
    """Return the pairs whose means are turned round, the farthest apart by exact W2 first."""
    turned = [pair for pair in told_apart(errors, row.settings) if _turned(errors, pair)]

    def gap(pair: Pair) -> float:
        name, better, worse, at = pair
        return float((errors.of(name, worse, at) / errors.of(name, better, at)).mean())

    lines = [
        [name, named(at, row.against), titled(better), titled(worse)]
        + [
            shown(errors.of(name, label, at, metric), 3)
            for metric in ("w2", "sinkhorn")
            for label in (better, worse)
        ]
        for name, better, worse, at in sorted(turned, key=gap, reverse=True)[:most]
    ]
    header = ["data", "", "better", "worse", "W2 of the better", "of the worse",
              "Sinkhorn of the better", "of the worse"]  # fmt: skip
    return markdown(header, lines) if lines else "No pair is turned round."


def told_apart(errors: Errors, settings: Sequence[Setting]) -> Iterator[Pair]:
    """Yield the pairs of mechanisms whose exact errors differ, the better one first."""
    for at in settings:
        for name in errors.names:
            labels = [label for label in errors.labels([at]) if label != UNIFORM]
            for one, other in combinations(labels, 2):
                found = verdict(errors.of(name, one, at), errors.of(name, other, at))
                if found != "level":
                    better, worse = (one, other) if found == "lower" else (other, one)
                    yield name, better, worse, at


def _turned(errors: Errors, pair: Pair) -> bool:
    name, better, worse, at = pair
    better_mean, worse_mean = (errors.of(name, label, at, "sinkhorn").mean()
                               for label in (better, worse))  # fmt: skip
    return bool(better_mean > worse_mean)


def _by_sinkhorn(errors: Errors, pair: Pair) -> str:
    name, better, worse, at = pair
    return verdict(errors.of(name, better, at, "sinkhorn"), errors.of(name, worse, at, "sinkhorn"))
