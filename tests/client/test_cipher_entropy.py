"""Random bytes for many draws: AES-256 in counter mode, and keys that are never used twice."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import numpy as np
import pytest
from scipy.stats import chi2

from client_sdk import ResponseTable, kernels, response_table
from client_sdk.cipher_entropy import KEY_BYTES, PIECE, system_keyed
from client_sdk.testing import FixedEntropy, StreamEntropy
from tests.support import naive_aes
from tests.support.scripts import needs_fork, run

FALSE_ALARM = 1e-6

# McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 13 and 14: the key 0; H is
# the cipher of counter 0, E(K, Y0) that of counter 1, and C, of a text of zeros, that of counter 2.
ZERO_KEY_STREAM = bytes.fromhex(
    "dc95c078a2408989ad48a21492842087530f8afbc74536b9a963b4f1c4cb738bcea7403d4d606b6e074ec5d3baf39d18"
)


def keyed_by(source: Callable[[int], bytes], n: int) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("client_sdk.entropy.system", source)
        return system_keyed(n)


def test_the_bytes_are_those_of_the_published_vectors() -> None:
    assert keyed_by(bytes, 48) == ZERO_KEY_STREAM
    assert keyed_by(bytes, 5) == ZERO_KEY_STREAM[:5]
    # NIST AESAVS, appendix E.4 (VarKey, 256 bits, first case), and FIPS 197, appendix C.3
    first = bytes([0x80, *bytes(31)])
    assert keyed_by(lambda _: first, 16).hex() == "e35a6dcb19b201a01ebcfa8aa22b5759"


def test_the_twin_gives_the_published_vectors() -> None:
    text = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert naive_aes.encipher(bytes(range(32)), text).hex() == "8ea2b7ca516745bfeafc49904b496089"
    assert naive_aes.stream(bytes(32), 48) == ZERO_KEY_STREAM


@pytest.mark.parametrize("n", [0, 1, 7, 16, 700, 5000])
def test_the_bytes_are_those_of_the_slow_twin(n: int) -> None:
    key = np.random.default_rng(n).bytes(KEY_BYTES)
    assert keyed_by(FixedEntropy(key), n) == naive_aes.stream(key, n)


def test_every_call_and_every_mebibyte_asks_for_a_key_of_its_own() -> None:
    asked = []

    def source(n: int) -> bytes:
        asked.append(n)
        return bytes([len(asked), *bytes(n - 1)])

    found = keyed_by(source, 2 * PIECE + 5)
    assert asked == [KEY_BYTES] * 3
    assert found[PIECE : PIECE + 32] == naive_aes.stream(bytes([2, *bytes(31)]), 32)
    assert found[2 * PIECE :] == naive_aes.stream(bytes([3, *bytes(31)]), 5)
    assert len(found) == 2 * PIECE + 5
    assert keyed_by(source, 5) == naive_aes.stream(bytes([4, *bytes(31)]), 5)


def test_two_calls_never_agree() -> None:
    """Two streams of 32 bytes agree by chance once in 2^256."""
    assert len({system_keyed(32) for _ in range(1000)}) == 1000


def test_threads_get_streams_of_their_own() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: system_keyed(1000)[:32], range(400)))
    assert len(found) == 400


@needs_fork
def test_a_parent_and_its_children_never_draw_the_same() -> None:
    """A source that keeps a key over the fork gives one stream to all of them, and fails here."""
    script = (
        "import os, sys\n"
        "from client_sdk.cipher_entropy import system_keyed\n"
        "system_keyed(100)\n"
        "readers = []\n"
        "for _ in range(3):\n"
        "    reader, writer = os.pipe()\n"
        "    if not os.fork():\n"
        "        os.write(writer, system_keyed(32))\n"
        "        os._exit(0)\n"
        "    readers.append(reader)\n"
        "streams = [system_keyed(32), *(os.read(reader, 32) for reader in readers)]\n"
        "print(len(set(streams)), {len(each) for each in streams})\n"
    )
    assert run(script) == "4 {32}\n"


@needs_fork
def test_a_fork_in_the_middle_of_a_call_repeats_no_draw_after_it() -> None:
    """A handler of a signal may fork between two pieces of entropy: both processes go on."""
    script = (
        "import os, warnings\n"
        "import numpy as np\n"
        # Its BLAS has threads, of which Python warns whoever forks.
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from client_sdk import cipher_entropy, kernels, response_table\n"
        "reader, writer = os.pipe()\n"
        "calls = []\n"
        "def forking(n):\n"
        "    calls.append(os.fork() if len(calls) == 1 else None)\n"
        "    return cipher_entropy.system_keyed(n)\n"
        "table = response_table('dam', 3.5, 15)\n"
        "cells = np.full(kernels.CHUNK_DRAWS + 50, 7)\n"
        "rows, cols = kernels.draw_many(table, cells, cells, forking)\n"
        "last = np.stack([rows, cols])[:, -50:].tobytes()\n"
        "if calls[1] == 0:\n"
        "    os.write(writer, last)\n"
        "    os._exit(0)\n"
        "print(len(last), os.read(reader, len(last)) == last)\n"
    )
    assert run(script) == "800 False\n"


@pytest.mark.parametrize("error", [OSError, NotImplementedError])
def test_without_the_operating_system_there_is_no_report(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> bytes:
        raise error("no random bytes")

    monkeypatch.setattr("client_sdk.entropy.system", fails)
    with pytest.raises(error, match="no random bytes"):
        kernels.randomize_many(response_table("dam", 3.5, 15), [3], [4])


def test_without_the_package_devices_work_and_the_kernels_say_what_to_install() -> None:
    script = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "import client_sdk\n"
        "try:\n"
        "    import client_sdk.kernels\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    needs = "client_sdk.kernels needs numpy, numba and cryptography"
    assert run(script) == f"{needs}: install ldpspatial-client[fast]\n"


def misfit(found: tuple[np.ndarray, np.ndarray], table: ResponseTable, cell: int) -> float:
    """Return Pearson's statistic of reports about one cell over the 1e-6 point of its law."""
    counts = Counter(zip(*(array.tolist() for array in found), strict=True))
    assert set(counts) <= set(table.output_cells())
    n = len(found[0])
    total = 0.0
    for row, col in table.output_cells():
        expected = n * float(table.probability(row - cell, col - cell))
        total += (counts[row, col] - expected) ** 2 / expected
    return total / float(chi2.isf(FALSE_ALARM, table.output_size - 1))


def test_reports_follow_the_table_and_keys_used_again_would_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chi-square of all output cells at false alarm 1e-6, over 150 keys of the cipher.

    With eight keys in turn, pieces of the reports repeat some 20 times, and so does their noise:
    the statistic is as many times too large.
    """
    monkeypatch.setattr(kernels, "CHUNK_DRAWS", 2000)
    table = response_table("dam", 2.0, 6)
    cell = 2
    cells = np.full(300_000, cell)
    monkeypatch.setattr("client_sdk.entropy.system", StreamEntropy("keys"))
    assert misfit(kernels.randomize_many(table, cells, cells), table, cell) < 1
    keys = cycle([bytes([k, *bytes(31)]) for k in range(8)])
    monkeypatch.setattr("client_sdk.entropy.system", lambda _: next(keys))
    assert misfit(kernels.randomize_many(table, cells, cells), table, cell) > 5


def test_bytes_and_neighbouring_bits_are_uniform() -> None:
    """Chi-square of the 65,536 values of two bytes at false alarm 1e-6; a stuck bit fails it."""
    found = np.frombuffer(keyed_by(StreamEntropy("bytes"), 4_000_000), np.uint16)

    def statistic(values: np.ndarray) -> float:
        counts = np.bincount(values, minlength=65536)
        expected = len(values) / 65536
        return float(((counts - expected) ** 2).sum() / expected)

    limit = float(chi2.isf(FALSE_ALARM, 65535))
    assert statistic(found) < limit
    biased = found.copy()
    biased[::10] |= 1  # one value in ten has its last bit set
    assert statistic(biased) > limit
