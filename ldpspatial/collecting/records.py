"""Reports as records of 20 bytes, and which of them count: each id of a collection once.

A record is the id of a report and its place: the flat index of its cell in the array of counts,
(row + b) * side + col + b. Reports with the same id and place are one report, sent again. An id
with two places belongs to no report that can be trusted, and all its reports are left out
(docs/protocol.md, section 7).

Equal ids are found by a hash of 64 bits under a random key: sorting whole numbers is much quicker
than sorting ids, and without the key nobody can choose ids that all fall into one part. Equal
hashes only say where to look; ids are then compared in full.
"""

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.errors import InputError

ID_BYTES = 16
RECORD = np.dtype([("id", np.uint32, 4), ("place", "<u4")])
RECORD_BYTES = RECORD.itemsize  # 20
PARTS = 256  # by the highest byte of the hash
KEY_BYTES = 32

Records = NDArray[np.void]  # of RECORD
Hashes = NDArray[np.uint64]


def new_key() -> bytes:
    """Return a random key for :func:`hashes`."""
    return secrets.token_bytes(KEY_BYTES)


def hashes(ids: NDArray[np.uint32], key: bytes) -> Hashes:
    """Return the hash of each id, one of 2^64.

    The sum of the id's four words times four odd numbers, modulo 2^64. Whatever two different ids
    are, under a random key their highest 32 bits agree with probability at most 2^-31 (multiply-
    shift hashing: Dietzfelbinger et al., J. Algorithms 1997).

    Parameters
    ----------
    ids : (n, 4) uint32 array
        The 16 bytes of each id as four words.
    key : bytes
        32 random bytes.
    """
    factors = np.frombuffer(key, "<u8") | np.uint64(1)
    words = ids.astype(np.uint64)
    total: Hashes = words[:, 0] * factors[0]
    for k in (1, 2, 3):
        total += words[:, k] * factors[k]
    return total


def parts(hashed: Hashes) -> NDArray[np.uint8]:
    """Return the part of each hash, 0 to 255: what is equal lies in one part."""
    found: NDArray[np.uint8] = (hashed >> np.uint64(56)).astype(np.uint8)
    return found


def in_order_of_id(records: Records) -> Records:
    """Return the records in ascending order of the bytes of their ids."""
    words = np.ascontiguousarray(records["id"]).view(">u8")
    return records[np.lexsort((words[:, 1], words[:, 0]))]


def distinct(records: Records, key: bytes) -> Records:
    """Return each different record once, in ascending order of hash, then id, then place."""
    hashed = hashes(records["id"], key)
    order = np.argsort(hashed, kind="stable")
    hashed = hashed[order]
    records = records[order]
    again = hashed[1:] == hashed[:-1]
    if not again.any():
        return records
    # Only what shares its hash with a neighbour needs to be looked at in full.
    at = np.flatnonzero(beside(again, len(records)))
    close = records[at]
    ids = close["id"]
    inner = np.lexsort((close["place"], ids[:, 3], ids[:, 2], ids[:, 1], ids[:, 0], hashed[at]))
    records[at] = close[inner]
    kept = np.ones(len(records), bool)
    kept[1:] = ~again | ~same_id(records) | (records["place"][1:] != records["place"][:-1])
    return records[kept]


def same_id(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Tell which records have the id of the one before, from the second on."""
    same: NDArray[np.bool_] = (records["id"][1:] == records["id"][:-1]).all(axis=1)
    return same


def beside(again: NDArray[np.bool_], records: int) -> NDArray[np.bool_]:
    """Tell which of so many records are like a neighbour, given which are like the one before."""
    found = np.zeros(records, bool)
    found[1:] = again
    found[:-1] |= again
    return found


@dataclass(frozen=True)
class Tally:
    """What a set of different records counts.

    Attributes
    ----------
    places : (n,) uint32 array
        Places of the records that count, one for each.
    conflicting : int
        Records left out, because another one has the same id.
    """

    places: NDArray[np.uint32]
    conflicting: int


def tally(records: Records, key: bytes) -> Tally:
    """Leave out the ids that name more than one place.

    Parameters
    ----------
    records : (n,) array of RECORD
        As :func:`distinct` returns them.
    key : bytes
        The key that they are ordered by.
    """
    hashed = hashes(records["id"], key)
    again = hashed[1:] == hashed[:-1]
    if not again.any():
        return Tally(records["place"], 0)
    again &= same_id(records)  # different records of one id stand beside each other
    bad = beside(again, len(records))
    return Tally(records["place"][~bad], int(bad.sum()))


class OutputDomain:
    """The output cells of a collection as intervals of columns, for many reports at once.

    Attributes
    ----------
    side : int
        Rows, and columns, of the array of counts: d + 2b.
    """

    def __init__(self, collection: Collection):
        table = collection.table
        self._radius = table.radius
        self._cells = table.cells
        self._margins = np.array([table.margin(row) for row in table.output_rows], np.int64)
        self.side = len(self._margins)

    def holds(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which cells a report may name."""
        row = rows + self._radius
        inside = (row >= 0) & (row < self.side)
        margin = self._margins[np.where(inside, row, 0)]
        return inside & (cols >= -margin) & (cols < self._cells + margin)

    def places(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the flat indices of output cells in the array of counts."""
        flat = (rows + self._radius) * self.side + cols + self._radius
        return flat.astype(np.uint32)

    def cells(self, places: NDArray[np.uint32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the rows and columns of places."""
        rows, cols = np.divmod(places.astype(np.int64), self.side)
        return (rows - self._radius).astype(np.int32), (cols - self._radius).astype(np.int32)


def records_of(ids: bytes, places: NDArray[np.uint32]) -> Records:
    """Return records from the bytes of ids, one after the other, and their places."""
    records = np.empty(len(places), RECORD)
    records["id"] = np.frombuffer(ids, np.uint32).reshape(-1, 4)
    records["place"] = places
    return records


def from_bytes(content: bytes) -> Records:
    """Return the records in bytes.

    Raises
    ------
    InputError
        The length is not a multiple of 20.
    """
    if len(content) % RECORD_BYTES:
        raise InputError(
            f"records must have a length that {RECORD_BYTES} divides, got {len(content)} bytes"
        )
    return np.frombuffer(content, RECORD)
