"""What the figures of the DAM paper say: tables, verdicts and curves, of errors made up."""

from collections import Counter

import pytest
from matplotlib.colors import same_color

from experiments.papers.dam.claims import (
    FIGURE_9,
    FIGURE_13,
    ONE_RUN,
    Claim,
    claims_table,
    counts,
    judged,
    steps,
    versus,
)
from experiments.papers.dam.figure8 import RULES, verdicts
from experiments.papers.dam.hidden import order_table, told_apart, turned_table
from experiments.papers.dam.mechanisms import (
    DAM,
    ESTIMATORS,
    GEO,
    HUEM,
    K_RR,
    MDSW,
    SEM,
    SEM_EM,
    releases,
    titled,
)
from experiments.papers.dam.plays import Errors
from experiments.papers.dam.report import draw_rows, means_table
from experiments.papers.dam.settings import Row, Setting

AT, NEXT = Setting(10, 3.5), Setting(15, 3.5)  # radii 2 and 3
ROW = Row("e-i", "cells", (AT, NEXT), published_sinkhorn=True)


def made(values: dict[tuple[str, Setting], tuple[list[float], list[float]]]) -> Errors:
    """Errors of a data set, W2 in cells and the published distance, by release and setting."""
    return Errors(
        {
            ("SZipf", label, at): [
                {"data": "part", "users": 5, "cells": at.cells, "repeat": repeat,
                 "w2": w2 / at.cells, "facts": {"sinkhorn": far, "sinkhorn_self": 0.1}}
                for repeat, (w2, far) in enumerate(zip(*runs, strict=True))
            ]
            for (label, at), runs in values.items()
        }
    )  # fmt: skip


LOW, HIGH = [1.0, 1.1, 1.2], [2.0, 2.15, 2.2]


def test_parts_of_a_data_set_are_averaged() -> None:
    rows = [
        {"data": part, "users": 5, "cells": 10, "repeat": repeat, "w2": w2, "facts": {}}
        for part, errors in {"a": (0.1, 0.2), "b": (0.3, 0.6)}.items()
        for repeat, w2 in enumerate(errors)
    ]
    errors = Errors({("Crime", DAM, AT): rows})
    assert errors.of("Crime", DAM, AT) == pytest.approx([2.0, 4.0])


def test_claims_are_judged_by_paired_intervals() -> None:
    errors = made({(DAM, AT): (LOW, HIGH), (MDSW, AT): (HIGH, LOW),
                   (DAM, NEXT): (HIGH, LOW), (MDSW, NEXT): (HIGH, LOW)})  # fmt: skip
    pairs = list(versus(DAM, MDSW)(errors, "SZipf", ROW, "w2"))
    assert list(pairs[0][0]) == pytest.approx(LOW)
    assert list(pairs[0][1]) == pytest.approx(HIGH)
    rises = list(steps([DAM, MDSW], rising=True)(errors, "SZipf", ROW, "w2"))
    assert len(pairs) == len(rises) == 2
    table = claims_table(errors, [Claim("DAM wins", ("e-i",), versus(DAM, MDSW))], [ROW])
    assert table.splitlines()[2] == (
        "| DAM wins | e-i | true or level: 1/1/0 | not true | SZipf 1/1/0 |"
    )


def test_one_law_is_no_pair() -> None:
    at = Setting(5, 3.5)
    row = Row("e-i", "cells", (at,), published_sinkhorn=True)
    errors = made({(DAM, at): (LOW, LOW), (HUEM, at): (HIGH, HIGH)})
    assert list(versus(DAM, HUEM)(errors, "SZipf", row, "w2")) == []


def test_words_for_tallies() -> None:
    assert judged(Counter(lower=3)) == "true"
    assert judged(Counter(lower=3, level=1)) == "true or level"
    assert judged(Counter(level=2, higher=1)) == "not true"
    assert judged(Counter(level=12)) == "level"
    assert judged(Counter(lower=8, level=4, higher=3)) == "more for than against"
    assert judged(Counter(lower=1, level=11, higher=3)) == "more against than for"
    assert judged(Counter(lower=3, higher=3)) == "as many for as against"
    assert counts(Counter(lower=3, higher=1)) == "3/0/1"


def test_one_run_judges_no_claim_and_the_output_says_so() -> None:
    def table(runs: int) -> str:
        low, high = LOW[:runs], HIGH[:runs]
        errors = made({(label, at): (errors, errors) for at in (AT, NEXT)
                       for label, errors in ((DAM, low), (MDSW, high))})  # fmt: skip
        return claims_table(errors, [Claim("DAM wins", ("e-i",), versus(DAM, MDSW))], [ROW])

    line, _, note = table(1).splitlines()[2:]
    assert line == "| DAM wins | e-i | level: 0/2/0 | level | SZipf 0/2/0 |"
    assert note == ONE_RUN
    assert table(2).splitlines()[2:] == ["| DAM wins | e-i | true: 2/0/0 | true |  |"]


def test_pairs_that_the_published_distance_turns_round() -> None:
    errors = made({(DAM, AT): (LOW, HIGH), (MDSW, AT): (HIGH, LOW), (K_RR, AT): (LOW, LOW),
                   (DAM, NEXT): (LOW, LOW), (MDSW, NEXT): (LOW, LOW)})  # fmt: skip
    assert [pair[1:3] for pair in told_apart(errors, [AT, NEXT])] == [(DAM, MDSW), (K_RR, MDSW)]
    assert order_table(errors, ROW).splitlines()[2:] == [
        "| d = 10 | 2 | 0 | 1 | 1 | 1 |",
        "| d = 15 | 0 | 0 | 0 | 0 | 0 |",
    ]
    assert (
        turned_table(errors, ROW, 5)
        .splitlines()[2]
        .startswith("| SZipf | d = 10 | DAM | MDSW | 1.100 ± 0.248 | 2.117 ±")
    )
    assert turned_table(made({(DAM, AT): (LOW, LOW), (DAM, NEXT): (LOW, LOW)}), ROW, 5) == (
        "No pair is turned round."
    )


def test_a_release_that_did_not_run_leaves_a_gap() -> None:
    errors = made({(DAM, AT): (LOW, LOW), (DAM, NEXT): (LOW, LOW), (SEM_EM, NEXT): (LOW, LOW)})
    assert (
        means_table(errors, ROW).splitlines()[3]
        == "| SZipf | SEM-Geo-I, EM (geo-indistinguishability) | – | 1.100 ± 0.248 |"
    )


def test_another_notion_than_eps_ldp_is_named_wherever_a_mechanism_stands() -> None:
    # In the first of these EM decodes SEM-Geo-I, in the second it does not: all labels there are.
    claims = [
        (label, release.claim(at.epsilon))
        for at in (Setting(5, 3.5), Setting(5, 1.4))
        for label, release in releases(at).items()
    ]
    assert {label for label, claim in claims if claim.notion != "differential privacy"} == {*GEO}
    assert {label for label in ESTIMATORS if titled(label) != label} == {*GEO}
    errors = made({(label, at): (LOW, LOW) for label in (DAM, SEM, SEM_EM) for at in (AT, NEXT)})
    turned = made({(SEM, AT): (LOW, HIGH), (SEM_EM, AT): (HIGH, LOW),
                   (SEM, NEXT): (LOW, LOW), (SEM_EM, NEXT): (LOW, LOW)})  # fmt: skip
    figure = draw_rows(errors, [("SZipf", ROW)], 1)
    (legend,) = figure.legends
    lines = [
        *means_table(errors, ROW).splitlines(),
        *turned_table(turned, ROW, 5).splitlines(),
        *(claim.text for claim in (*FIGURE_9, *FIGURE_13)),
        *(text.get_text() for text in legend.get_texts()),
    ]
    of_another = [line for line in lines if "SEM-Geo-I" in line]
    assert len(of_another) == 2 + 1 + 5 + 4 + 2
    assert all("(geo-indistinguishability)" in line for line in of_another)
    assert not any("geo-ind" in line for line in lines if "SEM-Geo-I" not in line)


def test_a_curve_of_another_notion_is_dashed_and_hollow() -> None:
    errors = made({(label, at): (LOW, LOW) for label in (DAM, SEM) for at in (AT, NEXT)})
    curves = [each[0] for each in draw_rows(errors, [("SZipf", ROW)], 1).axes[0].containers]
    assert [curve.get_linestyle() for curve in curves] == ["-", "--"]
    assert [same_color(curve.get_markerfacecolor(), "white") for curve in curves] == [False, True]


LEVEL, BELOW = [1.1, 1.0, 1.5], [0.5, 0.65, 0.7]  # beside LOW; the mean of LEVEL is greater


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (
            (HIGH, LEVEL, LEVEL, HIGH),
            "3 | none | 1, 5 | level: 2/2/0",
        ),  # the least mean proves it not
        ((HIGH, HIGH, HIGH, HIGH), "3 | none | 1, 2, 4, 5 | true: 4/0/0"),
        ((HIGH, BELOW, LEVEL, HIGH), "2 | 2 | 1, 5 | not true: 2/1/1"),
        ((LEVEL, LEVEL, LEVEL, LEVEL), "3 | none | none | level: 0/4/0"),
    ],
)
def test_a_least_error_is_judged_by_paired_differences(
    beside: tuple[list[float], ...], said: str
) -> None:
    one, two, four, five = beside
    at_each_radius = enumerate((one, two, LOW, four, five), start=1)
    runs = {f"{stop}, b = {radius}": errors for radius, errors in at_each_radius
            for stop in RULES}  # fmt: skip
    errors = made({(label, NEXT): (found, found) for label, found in runs.items()})
    lines = verdicts(errors).splitlines()[2:]
    assert lines == [f"| SZipf | {stop} | {said} |" for stop in RULES]


def test_one_run_finds_no_least_error_and_the_output_says_so() -> None:
    runs = {f"{stop}, b = {radius}": [float(radius)] for radius in range(1, 6)
            for stop in RULES}  # fmt: skip
    lines = verdicts(made({(label, NEXT): (w2, w2) for label, w2 in runs.items()})).splitlines()
    assert [line.split(" | ")[-1] for line in lines[2:5]] == ["level: 0/4/0 |"] * 3
    assert lines[5:] == ["", ONE_RUN]
