"""Finds ids that stand in more than one report, in one pass over any number of them.

Ids are hashed to 64 bits under a random key, the hashes split by their highest byte into files, and
each file sorted: work in proportion to the number of ids, and memory for a 256th of them. Equal
hashes are only a suspicion. Reports that share one are looked at in a second pass, in full; where
nothing is repeated there is none (:mod:`ldpspatial.collecting.counting`).
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpspatial.collecting.records import PARTS, Hashes, parts

HELD = 1 << 22  # rows that are held in memory before any file is written
Rows = NDArray[Any]


class Parts:
    """Rows that share a hash, together again: kept in memory, or in a file for each part.

    Parameters
    ----------
    folder : Path
        For the files; must be empty.
    dtype : numpy dtype
        Of a row.
    """

    def __init__(self, folder: Path, dtype: "np.dtype[Any]"):
        self._folder = folder
        self._dtype = dtype
        self._held: list[tuple[Hashes, Rows]] = []
        self._rows = 0
        self._is_spilt = False

    def add(self, hashed: Hashes, rows: Rows) -> None:
        """Add rows with the hash of each."""
        self._held.append((hashed, rows))
        self._rows += len(rows)
        if self._is_spilt or self._rows > HELD:
            self._spill()

    def __iter__(self) -> Iterator[Rows]:
        """Yield all rows, part by part."""
        if not self._is_spilt:
            if self._held:
                yield np.concatenate([rows for _, rows in self._held])
            return
        for part in range(PARTS):
            file = self._file(part)
            if file.exists():
                yield np.fromfile(file, self._dtype)

    def _spill(self) -> None:
        """Write what is held, each part into its file."""
        self._is_spilt = True
        for hashed, rows in self._held:
            part = parts(hashed)
            order = np.argsort(part, kind="stable")  # of bytes: by radix
            borders = np.searchsorted(part[order], np.arange(PARTS + 1))
            for k, (low, high) in enumerate(pairwise(borders)):
                if high > low:
                    with self._file(k).open("ab") as stream:
                        stream.write(rows[order[low:high]].tobytes())
        self._held.clear()

    def _file(self, part: int) -> Path:
        return self._folder / f"{part:03d}"


def repeated(hashes_by_part: Parts) -> Hashes:
    """Return the hashes that occur more than once, in ascending order."""
    found = [np.empty(0, np.uint64)]
    for hashed in hashes_by_part:
        ordered = np.sort(hashed)
        again = ordered[1:] == ordered[:-1]
        if again.any():
            found.append(np.unique(ordered[1:][again]))
    return np.sort(np.concatenate(found))


def member(of: Hashes) -> Callable[[Hashes], NDArray[np.bool_]]:
    """Return a function that tells which hashes are among these (in ascending order).

    A table of bits says no to most of them at once.
    """
    bits = np.zeros(1 << 22, bool)
    low = np.uint64(len(bits) - 1)
    bits[of & low] = True

    def is_member(hashed: Hashes) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = bits[hashed & low]
        at = np.flatnonzero(found)
        place = np.searchsorted(of, hashed[at])
        found[at] = of[np.minimum(place, len(of) - 1)] == hashed[at]
        return found

    return is_member
