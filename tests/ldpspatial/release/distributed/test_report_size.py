"""Sizes of reports: those of the test vectors of the draft, and the shortest proofs."""

import pytest

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.sums.two_servers.report_size import (
    histogram_report,
    multihot_report,
)

# draft-irtf-cfrg-vdaf-20, test_vec/vdaf/Prio3MultihotCountVec_*.json and Prio3Histogram_*.json:
# length, weight, chunk_length; bytes of public share, leader's and helper's share, verifier share.
# Vectors for more than two aggregators have a longer public share.
MULTIHOT = [
    ((4, 2, 2), (64, 304, 64, 128)),
    ((4, 4, 1), (64, 416, 64, 96)),
    ((10, 2, 3), (None, 560, 64, 160)),
]
HISTOGRAM = [
    ((4, 2), (64, 272, 64, 128)),
    ((11, 3), (None, 544, 64, 160)),
    ((100, 10), (64, 2448, 64, 384)),
]


@pytest.mark.parametrize(("given", "told"), MULTIHOT)
def test_multihot_reports_are_those_of_the_test_vectors(
    given: tuple[int, int, int], told: tuple[int | None, int, int, int]
) -> None:
    size = multihot_report(*given)
    found = (size.public, size.leader, size.helper, size.verifier)
    assert found == (told[0] or size.public, *told[1:])


@pytest.mark.parametrize(("given", "told"), HISTOGRAM)
def test_histogram_reports_are_those_of_the_test_vectors(
    given: tuple[int, int], told: tuple[int | None, int, int, int]
) -> None:
    size = histogram_report(*given)
    found = (size.public, size.leader, size.helper, size.verifier)
    assert found == (told[0] or size.public, *told[1:])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 17, 64, 65, 257, 1000])
def test_the_chunk_length_is_the_one_with_the_shortest_proof(length: int) -> None:
    best = min(histogram_report(length, chunk).leader for chunk in range(1, length + 1))
    assert histogram_report(length).leader == best
    size = multihot_report(length)
    assert size == multihot_report(length, 1, size.chunk_length)
    assert size.elements == length + 1


def test_an_upload_is_all_parts_sealed() -> None:
    """Counted out: metadata 16 + 8 + 2, a length 4; each share 1, 2 + 32, 4, 2, 4 and 16 more."""
    size = multihot_report(10, 2, 3)
    sealed = (1 + 2 + 32 + 4) + (2 + 4) + 16
    assert size.upload == 26 + 4 + 64 + (sealed + 560) + (sealed + 64)


def test_bad_arguments_are_refused() -> None:
    for most in (0, 11, 1.5, None):
        with pytest.raises(InputError, match="most must"):
            multihot_report(10, most)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="chunk_length must"):
        multihot_report(10, 1, 0)
    for call in (histogram_report, multihot_report):
        with pytest.raises(InputError, match="length must"):
            call(0)
