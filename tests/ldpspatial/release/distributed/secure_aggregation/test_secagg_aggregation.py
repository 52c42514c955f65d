import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.studies.round_costs import round_costs
from experiments.studies.secure_aggregation import published_bits, secure_aggregation
from ldpspatial.errors import InputError
from ldpspatial.release.distributed.sums import secure_aggregation as package
from ldpspatial.release.distributed.sums.client_cohort import ClientCohort
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Neighbours,
    SecureAggregation,
    Step,
    enrol,
    play,
)
from ldpspatial.release.distributed.sums.secure_sum import ModularSum, SecureSum
from tests.support.aggregation_rounds import seeded, some_vectors, terms


def test_the_public_names() -> None:
    assert package.__all__ == [
        "AbortedError",
        "Client",
        "Neighbours",
        "Outcome",
        "ProtocolError",
        "SecureAggregation",
        "Server",
        "Step",
        "Terms",
        "choose_neighbours",
        "enrol",
        "play",
    ]
    assert all(hasattr(package, name) for name in package.__all__)
    assert not hasattr(package, "no_such_name")


@settings(max_examples=25)
@given(
    st.lists(st.booleans(), min_size=1, max_size=7),
    st.integers(2, 7),
    st.sampled_from([1, 8, 20, 62]),
    st.integers(1, 5),
)
def test_it_is_the_secure_sum_of_a_trusted_party(
    here: list[bool], threshold: int, bits: int, length: int
) -> None:
    survivors = np.array(here)
    vectors = np.random.default_rng(length).integers(0, 1 << bits, (len(here), length))
    real: SecureSum = SecureAggregation(threshold, bits, honest_server=True)
    ideal: SecureSum = ModularSum(1 << bits, threshold)
    assert (real.modulus, real.threshold) == (ideal.modulus, ideal.threshold)
    found, expected = real.total(vectors, survivors), ideal.total(vectors, survivors)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.dtype == np.int64
        assert found.tolist() == expected.tolist()


def test_on_a_circle_it_is_too() -> None:
    real = SecureAggregation(8, 20, neighbours=Neighbours(6, 3), honest_server=True)
    vectors = np.random.default_rng(1).integers(0, real.modulus, (12, 30))
    survivors = np.arange(12) % 4 > 0
    found = real.total(vectors, survivors)
    assert found is not None
    assert found.tolist() == (vectors[survivors].sum(axis=0) % real.modulus).tolist()


def test_entropy_is_the_operating_systems_but_for_tests() -> None:
    asked: list[int] = []

    def counted(n: int) -> bytes:
        asked.append(n)
        return seeded(len(asked))(n)

    vectors, here = np.ones((3, 2), np.int64), np.ones(3, bool)
    found = SecureAggregation(2, 8, entropy=counted).total(vectors, here)
    assert found is not None
    assert found.tolist() == [3, 3]
    # A session's name; two keys of an identity each; secrets and coefficients of 16 bytes.
    assert asked[0] == 16
    assert sorted(set(asked)) == [16, 32]
    assert asked.count(32) == 3 * 2
    assert "entropy" not in repr(SecureAggregation(2, 8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1, "bits": 8}, "threshold must be a whole number from 2 to 1048576, got 1"),
        ({"threshold": 2, "bits": 63}, "bits must be a whole number from 1 to 62, got 63"),
        ({"threshold": 2, "bits": 8, "neighbours": Neighbours(6, 3)}, "at most the threshold 2"),
    ],
)
def test_fields_that_cannot_be(arguments: Mapping[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SecureAggregation(**arguments)  # type: ignore[arg-type]


def test_of_a_modulus_it_is_what_a_sum_of_clients_asks_for() -> None:
    sums = SecureAggregation.of_modulus(
        1 << 32, 700, neighbours=Neighbours(6, 3), entropy=seeded(1), honest_server=True
    )
    assert (sums.modulus, sums.threshold, sums.bits) == (1 << 32, 700, 32)
    assert sums.neighbours == Neighbours(6, 3)
    here = np.ones(3, bool)
    found = SecureAggregation.of_modulus(modulus=8, threshold=2).total(np.ones((3, 1), int), here)
    assert found is not None
    assert found.tolist() == [3]
    for modulus in (100, 1, 1 << 63, 8.0):
        with pytest.raises(InputError, match="modulus must"):
            SecureAggregation.of_modulus(modulus, 2)  # type: ignore[arg-type]


def test_what_it_rests_on_is_said() -> None:
    whole = SecureAggregation(4, 8)
    circle = SecureAggregation(4, 8, Neighbours(6, 3), honest_server=True)
    trusting = SecureAggregation(4, 8, honest_server=True)
    for sums in (whole, circle, trusting):
        assert sums.assumption.startswith("computational: sums by secure aggregation on X25519")
    assert "twice the threshold exceeds" in whole.assumption
    assert "any server" not in circle.assumption + trusting.assumption


def test_a_threshold_that_a_server_could_split_is_refused() -> None:
    """Half of ten clients may be told of one list of survivors, and half of another."""
    split = "threshold must be 6 or more of 10 clients with 0 colluding, against a server"
    vectors, here = np.ones((10, 2), np.int64), np.ones(10, bool)
    with pytest.raises(InputError, match=split):
        SecureAggregation(5, 8).total(vectors, here)
    assert SecureAggregation(6, 8).total(vectors, here) is not None
    assert SecureAggregation(5, 8, honest_server=True).total(vectors, here) is not None
    with pytest.raises(InputError, match="7 or more of 10 clients with 3 colluding"):
        SecureAggregation(6, 8, colluding=3).total(vectors, here)
    with pytest.raises(InputError, match="neighbours must be None against a server that may do"):
        SecureAggregation(8, 8, Neighbours(6, 5))
    with pytest.raises(InputError, match=r"neighbours\.shares must be 6 or more of 10"):
        SecureAggregation(6, 8, Neighbours(10, 5)).total(vectors, here)
    cohort = {"shard_size": 10, "tolerated": 0.4, "colluding": 0.2}
    with pytest.raises(InputError, match="7 or more of 10 clients with 2 colluding"):
        ClientCohort(**cohort, secure_sum=SecureAggregation.of_modulus)  # type: ignore[arg-type]
    trusted = partial(SecureAggregation.of_modulus, honest_server=True)
    assert ClientCohort(**cohort, secure_sum=trusted).shard_size == 10  # type: ignore[arg-type]


def test_vectors_that_cannot_be() -> None:
    sums, here = SecureAggregation(2, 8), np.ones(3, bool)
    shape = 3, 2
    wrong: list[Any] = [np.full(shape, 256), np.full(shape, -1), np.zeros(shape), np.zeros(3, int)]
    for vectors in wrong:
        with pytest.raises(InputError, match="vectors must"):
            sums.total(vectors, here)
    with pytest.raises(InputError, match="survivors must"):
        sums.total(np.zeros((3, 2), int), here[:2])
    with pytest.raises(InputError, match="length must"):
        sums.total(np.zeros((3, 0), int), here)


def test_without_cryptography_the_message_names_the_extra() -> None:
    code = """
import sys
sys.modules["cryptography.hazmat.primitives.asymmetric.x25519"] = None
import ldpspatial.release.distributed.sums.secure_aggregation as package
from ldpspatial.errors import InputError
try:
    package.SecureAggregation
except InputError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "secure aggregation needs the package cryptography: install ldpspatial[secure-aggregation]"
    )


def test_the_published_formula_gives_the_published_numbers() -> None:
    # Bonawitz et al., abstract: 2^10 users with 2^20 numbers of 16 bits, and 2^14 with 2^24.
    for users, length, expansion in ((2**10, 2**20, 1.73), (2**14, 2**24, 1.98)):
        modulus_bits = 16 + (users - 1).bit_length()  # the sum has to fit
        found = published_bits(users, length, modulus_bits, 256, 256)
        assert round(found / (16 * length), 2) == expansion


@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 2)])
def test_bytes_are_the_formula_and_what_comes_on_top(neighbours: Neighbours | None) -> None:
    agreed = terms(9, 5, bits=20, length=40, neighbours=neighbours)
    clients, server = enrol(agreed, seeded(1))
    outcome = play(clients, server, some_vectors(agreed), {3: Step.MASK})
    others = agreed.degree
    # On the circle client 3, who fails, is a neighbour of client 0 or not.
    kept = server._neighbours[0] - {3}
    header = 37  # a byte for the round, the session's 32, the client's 4
    assert outcome.sent[:, 0].tolist() == [
        header + 32 + 64,
        header + 32 + others * (16 + 16 + 16),
        header + 40 * 20 // 8,
        header + (len(kept) - 1) * 16,
        header + 4 + (others + 1) * 16,
    ]
    assert outcome.received[:, 0].tolist() == [
        header + (others + 1) * (4 + 32),
        header + others * (4 + 16 + 16 + 16),
        header + 2,
        header + (len(kept) - 1) * (4 + 16),
        0,
    ]
    # Public keys, shares and the vector alone are what the formula counts. Of the two keys of a
    # client one is drawn for the session here, and the directory has the other.
    counted = 2 * 32 + 2 * 32 * others + 2 * 2 * 16 * others + 16 * (others + 1) + 40 * 20 // 8
    assert counted == published_bits(others + 1, 40, 20, 256, 128) // 8


def test_the_measurement_runs() -> None:
    arguments = ["--clients", "20", "--complete", "10", "--threshold", "0.7", "--colluding", "0.1"]
    run = CliRunner().invoke(secure_aggregation, arguments)
    assert run.exit_code == 0, run.output
    assert run.output.count("| 20 |") == 4
    assert run.output.count("| 10 | all |") == 2


def test_the_measurement_of_a_device_in_a_round_runs() -> None:
    arguments = ["--clients", "20", "--devices", "1", "--length", "3", "--level", "2"]
    run = CliRunner().invoke(round_costs, arguments)
    assert run.exit_code == 0, run.output
    assert run.output.count("| 20 |") == 5
    assert run.output.count("| 3 x ") == 4
    assert run.output.count("| 16 x ") == 1
