"""What the paper says of its figures, and whether the runs here say so too.

A claim is about pairs of errors, the first of which is said to be lower. The pairs are runs on the
same people, and a pair of settings counts as lower or higher where the 95 % t interval of the
differences leaves 0 out, otherwise as level.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.pairs import verdict
from experiments.papers.dam.mechanisms import (
    DAM,
    DAM_NS,
    HUEM,
    MDSW,
    MDSW_PLAIN,
    OURS,
    PAPERS,
    SEM,
    SEM_EM,
    as_dam,
    titled,
)
from experiments.papers.dam.plays import Errors
from experiments.papers.dam.settings import REAL, ROWS, SYNTHETIC, Row, Setting
from experiments.sources import Array
from experiments.tables import markdown

Pairs = Callable[[Errors, str, Row, str], Iterator[tuple[Array, Array]]]
EVERY = (*REAL, *SYNTHETIC)
WITHOUT_SZIPF = tuple(name for name in EVERY if name != "SZipf")
ONE_RUN = "One run has no interval: all pairs are level, and no claim is judged."


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper.

    Attributes
    ----------
    text : str
    rows : names in ROWS
    pairs : callable (errors, data set, row, metric) -> pairs of errors, the first said to be lower
    sets : names of data sets
        On which it is said.
    """

    text: str
    rows: tuple[str, ...]
    pairs: Pairs
    sets: tuple[str, ...] = EVERY


def versus(
    first: str, second: str, where: Callable[[Setting], bool] = lambda setting: True
) -> Pairs:
    """Pair two releases in each setting, left out where they are one and the same."""

    def pairs(errors: Errors, name: str, row: Row, metric: str) -> Iterator[tuple[Array, Array]]:
        for at in filter(where, row.settings):
            ran = errors.has(name, first, at) and errors.has(name, second, at)
            if ran and not (as_dam(first, at) and as_dam(second, at)):
                yield errors.of(name, first, at, metric), errors.of(name, second, at, metric)

    return pairs


def steps(labels: Sequence[str], rising: bool) -> Pairs:
    """Pair each setting with the next one, the first of the pair where the error is to be lower."""

    def pairs(errors: Errors, name: str, row: Row, metric: str) -> Iterator[tuple[Array, Array]]:
        for label in labels:
            for one, other in pairwise(row.settings):
                low, high = (one, other) if rising else (other, one)
                yield errors.of(name, label, low, metric), errors.of(name, label, high, metric)

    return pairs


GEO_I = titled(SEM)
OTHERS = tuple(label for label in PAPERS if label != MDSW)
FIGURE_9 = (
    Claim("W2 grows with d: all but MDSW", ("a-d", "e-i"), steps(OTHERS, rising=True)),
    Claim("W2 grows with d: MDSW, but for SZipf", ("a-d", "e-i"), steps([MDSW], rising=True),
          WITHOUT_SZIPF),
    Claim("not so MDSW on SZipf: here, does it grow?", ("a-d", "e-i"),
          steps([MDSW], rising=True), ("SZipf",)),
    Claim("W2 falls with epsilon", ("j-n", "o-s"), steps(PAPERS, rising=False)),
    Claim("DAM is always better than MDSW", tuple(ROWS), versus(DAM, MDSW)),
    Claim("the same, MDSW unsmoothed", tuple(ROWS), versus(DAM, MDSW_PLAIN)),
    Claim("the same, DAM with our stop", tuple(ROWS), versus(OURS, MDSW_PLAIN)),
    Claim("HUEM is better than MDSW in most cases", tuple(ROWS), versus(HUEM, MDSW)),
    Claim("DAM is better than HUEM", tuple(ROWS), versus(DAM, HUEM)),
    Claim("DAM is better than DAM-NS on real data", tuple(ROWS), versus(DAM, DAM_NS), REAL),
    Claim("(the same on synthetic data)", tuple(ROWS), versus(DAM, DAM_NS), tuple(SYNTHETIC)),
    Claim(f"{GEO_I} is slightly better at small d", ("a-d",), versus(SEM, DAM)),
    Claim(f"{GEO_I} is slightly better at small epsilon (0.7, 1.4)", ("j-n",),
          versus(SEM, DAM, lambda at: at.epsilon < 2)),
    Claim(f"DAM is better than {GEO_I} at larger d (10, 15, 20)", ("e-i",),
          versus(DAM, SEM, lambda at: at.cells >= 10)),
    Claim(f"DAM is better than {GEO_I} at large epsilon", ("o-s",), versus(DAM, SEM)),
    Claim(f"the same, {GEO_I} decoded by EM", ("o-s",), versus(DAM, SEM_EM)),
)  # fmt: skip
FIGURE_13 = (
    Claim("DAM is better than MDSW, as on the parts", tuple(ROWS), versus(DAM, MDSW)),
    Claim("DAM is better than HUEM, as on the parts", tuple(ROWS), versus(DAM, HUEM)),
    Claim("DAM is better than DAM-NS, as on the parts", tuple(ROWS), versus(DAM, DAM_NS)),
    *(
        Claim(f"DAM is better than the others at large d (10, 15, 20): {titled(other)}", ("e-i",),
              versus(DAM, other, lambda at: at.cells >= 10))
        for other in (SEM, MDSW, HUEM, DAM_NS)
    ),
    Claim(f"{GEO_I} is slightly better as epsilon grows, to 3.5", ("j-n",), versus(SEM, DAM)),
    Claim(f"{GEO_I} is slightly better as epsilon grows, 5 to 9", ("o-s",), versus(SEM, DAM)),
    Claim(f"the same, {GEO_I} decoded by EM", ("o-s",), versus(SEM_EM, DAM)),
)  # fmt: skip


def claims_table(errors: Errors, claims: Iterable[Claim], rows: Sequence[Row]) -> str:
    """Return a line for each claim and row of settings: by exact W2, by the published distance.

    The latter only where the paper measured with it. What follows says on which data not all pairs
    are as claimed: lower / level / higher.
    """
    lines = []
    for claim in claims:
        for row in (row for row in rows if row.panels in claim.rows):
            by_set = _tallies(errors, claim, row, "w2")
            total = _sum(by_set.values())
            if not total:
                continue
            published = "–"
            if row.published_sinkhorn:
                published = judged(_sum(_tallies(errors, claim, row, "sinkhorn").values()))
            apart = ", ".join(
                f"{name} {counts(tally)}" for name, tally in by_set.items()
                if tally and judged(tally) != "true"
            )  # fmt: skip
            lines.append([claim.text, row.panels, f"{judged(total)}: {counts(total)}",
                          published, apart])  # fmt: skip
    header = ["the paper", "settings of", "exact W2", "published Sinkhorn",
              "data where not all pairs are as claimed"]  # fmt: skip
    return noted(markdown(header, lines), errors)


def noted(table: str, errors: Errors) -> str:
    """Return a table of verdicts, and under it what one run of each setting cannot tell."""
    repeats = {row["repeat"] for rows in errors.rows.values() for row in rows}
    return table if len(repeats) > 1 else f"{table}\n\n{ONE_RUN}"


def judged(tally: Counter[str]) -> str:
    """Return what the counts say of a claim; level pairs speak neither for it nor against it."""
    held = tally["lower"]
    against = tally["higher"]
    if not against:
        return ("true or level" if tally["level"] else "true") if held else "level"
    if not held:
        return "not true"
    if held == against:
        return "as many for as against"
    return "more for than against" if held > against else "more against than for"


def judged_least(tally: Counter[str]) -> str:
    """Return whether what is first in all these pairs is the least: one lower rival refutes it."""
    if tally["higher"]:
        return "not true"
    return "level" if tally["level"] else "true"


def counts(tally: Counter[str]) -> str:
    """Return how many pairs are as claimed, level, and the other way."""
    return f"{tally['lower']}/{tally['level']}/{tally['higher']}"


def _tallies(errors: Errors, claim: Claim, row: Row, metric: str) -> dict[str, Counter[str]]:
    return {
        name: Counter(verdict(low, high) for low, high in claim.pairs(errors, name, row, metric))
        for name in errors.names
        if name in claim.sets
    }


def _sum(tallies: Iterable[Counter[str]]) -> Counter[str]:
    return sum(tallies, Counter())
