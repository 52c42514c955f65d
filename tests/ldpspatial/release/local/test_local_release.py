"""What all local releases share: facts and errors."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.estimation.stopping import LikelihoodGain
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.local import (
    Dam,
    DamNs,
    DamPoints,
    DamTrajectory,
    DifferenceSets,
    Disk,
    Hdg,
    Huem,
    KRr,
    LdpTrace,
    LocalRelease,
    Matched,
    Mdsw,
    MdswJoint,
    Olh,
    Oue,
    PivotTrace,
    PlanarLaplace,
    Rhombus,
    SemGeoI,
    SquareWave,
    SubsetSelection,
)
from ldpspatial.release.local.disks.dam import PaperDisk

OTHER = "tests.support.extensions:Uniform"
ROW = cells_by_user(np.arange(60), np.arange(60) ** 2 % 9, (1, 9))
SQUARE = cells_by_user(np.arange(60), np.arange(60) ** 2 % 9, (3, 3))


def estimator(release: LocalRelease, users: UserCells = SQUARE) -> object:
    return release.release(users, 2.0, np.random.default_rng(1)).facts["estimator"]


@pytest.mark.parametrize(
    "kind",
    [Dam, DamNs, Huem, Disk, Rhombus, KRr, DamTrajectory, DamPoints, MdswJoint, PlanarLaplace,
     SubsetSelection],
)  # fmt: skip
def test_facts_tell_em_from_another_estimator(kind: type[LocalRelease]) -> None:
    assert estimator(kind(rule="scaled")) == "em"  # type: ignore[call-arg]
    assert estimator(kind(rule=OTHER)) == "uniform"  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Oue, Olh, SubsetSelection])
def test_facts_of_sets_tell_em_from_another_and_projection(kind: type[LocalRelease]) -> None:
    expected = {
        ("em", "scaled"): "em",
        ("em", OTHER): "uniform",
        ("projection", "scaled"): "projection",
    }
    for (given, rule), name in expected.items():
        assert estimator(kind(estimator=given, rule=rule)) == name  # type: ignore[call-arg]


def test_facts_of_waves_tell_whether_em_was_smoothed() -> None:
    for kind, users in ((Mdsw, SQUARE), (MdswJoint, SQUARE), (SquareWave, ROW)):
        assert estimator(kind(smoothing=True), users) == "ems"
        assert estimator(kind(smoothing=False), users) == "em"
        assert estimator(kind(smoothing=False, rule=OTHER), users) == "uniform"


@pytest.mark.parametrize("release", [Dam(radius=99), DamNs(radius=99), Huem(radius=99)])
def test_what_the_client_refuses_is_an_input_error(release: PaperDisk) -> None:
    for call in (
        lambda: release.local_privacy(3, 1.0),
        lambda: release.release(SQUARE, 1.0, np.random.default_rng(1)),
        lambda: Matched(Rhombus(), release, cells=3).match(1.0),
    ):
        with pytest.raises(InputError, match=r"radius must be a whole number from 0 to .*, got 99"):
            call()


@pytest.mark.parametrize(
    ("kind", "field", "number"),
    [
        (DamTrajectory, "slots", np.int64(2)),
        (Hdg, "usual_users", np.int16(1000)),
        (LdpTrace, "most_points", np.int8(127)),  # whose successor is none
        (PivotTrace, "pivots", np.uint8(200)),  # nor is its double
        (PivotTrace, "sectors", np.int32(4)),
        (SemGeoI, "size", np.int8(2)),
        (partial(Matched, SemGeoI(), Dam()), "cells", np.int64(3)),
        (Mdsw, "smoothing", np.bool_(False)),
        (MdswJoint, "smoothing", np.bool_(True)),
        (Dam, "radius", np.int64(1)),
        (Disk, "squared_radius", np.uint16(2)),
    ],
)
def test_numbers_and_bools_of_numpy_are_those_of_python(
    kind: Callable[..., LocalRelease], field: str, number: np.generic
) -> None:
    given, plain = kind(**{field: number}), kind(**{field: number.item()})
    assert given == plain
    assert type(getattr(given, field)) in (bool, int)
    runs = [each.release(SQUARE, 5.0, np.random.default_rng(1)) for each in (given, plain)]
    assert (runs[0].density == runs[1].density).all()
    assert (runs[0].facts, runs[0].claim) == (runs[1].facts, runs[1].claim)


@pytest.mark.parametrize("kind", [KRr, Oue, Olh, SubsetSelection])
@pytest.mark.parametrize("estimator", ["em", "projection"])
def test_a_rule_that_is_none_is_refused_whatever_the_estimator(
    kind: type[LocalRelease], estimator: str
) -> None:
    for rule in ("nonsense", 3, None):
        with pytest.raises(InputError, match=r"rule must be one of field, .*, got"):
            kind(estimator=estimator, rule=rule)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [KRr, Oue, Olh, SubsetSelection, DifferenceSets])
def test_a_rule_that_nothing_would_use_is_refused(kind: type[LocalRelease]) -> None:
    for rule in ("likelihood", OTHER, LikelihoodGain(0.1)):
        kind(estimator="em", rule=rule)  # type: ignore[call-arg]
        with pytest.raises(InputError, match="rule must be left out with estimator 'projection'"):
            kind(estimator="projection", rule=rule)  # type: ignore[call-arg]


@pytest.mark.parametrize("epsilon", [1e-7, 25])
def test_no_table_has_a_claim_without_a_table(epsilon: float) -> None:
    rule = r"epsilon must be a number from 0\.000001 to 20, got"
    for release in (Dam(), Disk(), Rhombus(), KRr(), DamPoints()):
        with pytest.raises(InputError, match=rule):
            release.claim(epsilon)
