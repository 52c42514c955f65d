"""What all local releases share: facts and errors."""

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.local import (
    Dam,
    DamNs,
    DamPoints,
    DamTrajectory,
    Disk,
    Huem,
    KRr,
    LocalRelease,
    Matched,
    Mdsw,
    MdswJoint,
    Olh,
    Oue,
    PlanarLaplace,
    Rhombus,
    SquareWave,
    SubsetSelection,
)
from ldpspatial.local.dam import PaperDisk
from ldpspatial.users import UserCells, cells_by_user

SIEVE = "cross-validated"
ROW = cells_by_user(np.arange(60), np.arange(60) ** 2 % 9, (1, 9))
SQUARE = cells_by_user(np.arange(60), np.arange(60) ** 2 % 9, (3, 3))


def estimator(release: LocalRelease, users: UserCells = SQUARE) -> object:
    return release.release(users, 2.0, np.random.default_rng(1)).facts["estimator"]


@pytest.mark.parametrize(
    "kind",
    [Dam, DamNs, Huem, Disk, Rhombus, KRr, DamTrajectory, DamPoints, MdswJoint, PlanarLaplace,
     SubsetSelection],
)  # fmt: skip
def test_facts_tell_em_from_a_sieve(kind: type[LocalRelease]) -> None:
    assert estimator(kind(rule="scaled")) == "em"  # type: ignore[call-arg]
    assert estimator(kind(rule=SIEVE)) == "sieve"  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Oue, Olh, SubsetSelection])
def test_facts_of_sets_tell_em_from_a_sieve_and_from_projection(kind: type[LocalRelease]) -> None:
    expected = {("em", "scaled"): "em", ("em", SIEVE): "sieve", ("projection", SIEVE): "projection"}
    for (given, rule), name in expected.items():
        assert estimator(kind(estimator=given, rule=rule)) == name  # type: ignore[call-arg]


def test_facts_of_waves_tell_whether_em_was_smoothed() -> None:
    for kind, users in ((Mdsw, SQUARE), (MdswJoint, SQUARE), (SquareWave, ROW)):
        assert estimator(kind(smoothing=True), users) == "ems"
        assert estimator(kind(smoothing=False), users) == "em"
        assert estimator(kind(smoothing=False, rule=SIEVE), users) == "sieve"


@pytest.mark.parametrize("release", [Dam(radius=-1), DamNs(radius=-1), Huem(radius=2.5)])  # type: ignore[arg-type]
def test_what_the_client_refuses_is_an_input_error(release: PaperDisk) -> None:
    for call in (
        lambda: release.local_privacy(3, 1.0),
        lambda: release.release(SQUARE, 1.0, np.random.default_rng(1)),
        lambda: Matched(Rhombus(), release, cells=3).match(1.0),
    ):
        with pytest.raises(InputError, match="radius must be a whole number"):
            call()


@pytest.mark.parametrize("epsilon", [1e-7, 25])
def test_no_table_has_a_claim_without_a_table(epsilon: float) -> None:
    rule = r"epsilon must be a number from 0\.000001 to 20, got"
    for release in (Dam(), Disk(), Rhombus(), KRr(), DamPoints()):
        with pytest.raises(InputError, match=rule):
            release.claim(epsilon)
