"""Visible text: the names of a document hold nothing that people cannot see.

An invisible character would make two documents that look alike and have different digests, so
that a server could tell devices apart. Which characters are seen is a table of docs/protocol.md,
section 5, made once from Unicode 13.0 and the same in every language; the ``unicodedata`` of the
running Python would give another answer in every version. client_sdk/schema/visible-1.json holds
it as data, and make_visible.py beside it makes both.
"""

from bisect import bisect_right
from functools import cache
from itertools import accumulate

# How many code points in turn are left out and kept, from U+0000 on, in hexadecimal.
_RUNS = (
    "20 5f 22 c 1 2a1 1 28 2 6 4 7 1 1 1 14 1 18d 1 26 2 32 2 3 1 37 8 1b 4 6 11 16 2 bf 1 30 2 "
    "3b 2 65 e 3b 2 31 2 f 1 1c 2 1 1 b 35 15 1 12 b f 1 a1 1 8 2 2 2 16 1 7 1 1 3 4 2 9 2 2 2 4 "
    "8 1 4 2 1 5 2 19 2 3 1 6 4 2 2 16 1 7 1 2 1 2 1 2 2 1 1 5 4 2 2 3 3 1 7 4 1 1 7 11 a 3 1 9 1 "
    "3 1 16 1 7 1 2 1 5 2 a 1 3 1 3 2 1 f 4 2 c 7 7 1 3 1 8 2 2 2 16 1 7 1 2 1 5 2 9 2 2 2 3 7 3 "
    "4 2 1 5 2 12 a 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 c 4 5 3 3 1 4 2 1 6 1 e 15 5 d 1 3 1 17 1 "
    "10 3 8 1 3 1 4 7 2 1 3 5 4 2 a 7 16 1 3 1 17 1 a 1 5 2 9 1 3 1 4 7 2 7 1 1 4 2 a 1 2 d d 1 3 "
    "1 33 1 3 1 6 4 10 2 1a 1 3 1 12 3 18 1 9 1 1 2 7 3 1 4 6 1 1 1 8 6 a 2 3 c 3a 4 1d 25 2 1 1 "
    "1 5 1 18 1 1 1 17 2 5 1 1 1 6 2 a 2 4 20 48 1 24 4 27 1 24 1 f 1 d 25 c6 1 1 5 1 2 8f 2 e8 1 "
    "4 2 7 1 1 1 4 2 29 1 4 2 21 1 4 2 7 1 1 1 4 2 f 1 39 1 4 2 43 2 20 3 1a 6 56 2 6 2 280 1 1c "
    "3 59 7 d 1 7 b 17 9 14 c d 1 3 1 2 c 34 2 28 2 a 6 a 6 b 5 a 6 59 7 2b 5 46 a 1f 1 c 4 c 4 1 "
    "3 2a 2 5 b 2c 4 1a 6 b 3 3e 2 41 1 1d 2 b 6 a 6 e 2 11 3f 4c 4 2d 3 74 8 3c 3 f 3 3c 7 2b 2 "
    "b 8 2b 5 fa 1 11b 2 6 2 26 2 6 2 8 1 1 1 1 1 1 1 1f 2 35 1 f 1 e 2 6 1 13 2 3 1 9 11 18 8 2f "
    "11 2 2 1b 1 d 3 20 10 21 f 8c 4 297 19 b 15 3a0 1 373 2 20 1 98 1 2f 1 94 5 2d 1 1 5 1 2 38 "
    "7 2 e 18 9 7 1 7 1 7 1 7 1 7 1 7 1 7 1 7 1 73 2d 1a 1 59 c d6 1a c 5 3f 1 56 2 67 5 2b 1 33 "
    "1 2a 1 54 c 2f 1 6ddd 3 48d 3 37 9 15c 14 b8 8 c0 2 9 2a 38 3 a 6 38 8 46 8 c 6 74 b 1e 3 4e "
    "1 b 4 21 1 37 9 e 2 a 2 67 18 1c a 6 2 6 2 6 9 7 1 7 1 3c 4 7e 2 a 6 2ba4 c 17 4 31 2104 16e "
    "2 6a 26 7 c 5 5 1a 1 5 1 1 1 2 1 2 1 7c 11 16d 10 40 2 36 28 e 12 a 6 33 1 13 1 4 4 5 1 87 4 "
    "9f 1 1e 3 6 2 6 2 6 2 3 3 7 1 7 11 c 1 1a 1 13 1 2 1 f 2 e 22 7b 5 3 4 2d 3 58 1 d 3 1 2f 2e "
    "82 1d 3 31 f 1c 4 24 9 1e 5 2b 5 1e 1 25 4 e 2a 9e 2 a 6 24 4 24 4 28 8 34 b 1 90 137 9 16 a "
    "8 98 6 2 1 1 2c 1 2 3 1 2 17 1 48 8 9 30 13 1 2 5 21 3 1b 5 1 40 38 4 14 2 32 1 2 5 8 1 3 1 "
    "1d 2 3 4 a 7 9 7 40 20 27 4 c 9 36 3 1d 2 1b 5 1a 7 4 c 7 50 49 37 33 d 33 7 2e 8 a 126 1f 1 "
    "2a 1 3 2 2 4e 28 8 2a 56 1c 14 17 9 4e 4 1e f 3e 1 4 e 19 7 a 6 35 1 12 8 27 9 60 1 14 b 12 "
    "1 2c 41 7 1 1 1 4 1 f 1 b 6 3b 5 a 6 4 1 8 2 2 2 16 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 "
    "3 5 8b 5c 1 5 1e 48 8 a a6 36 2 26 22 45 b a 6 d 13 39 7 a 36 1b 2 f 4 10 c0 3c 64 53 c 8 2 "
    "1 2 8 1 2 1 1e 1 2 2 c 9 a 46 8 2 2e 2 b 1b 48 8 53 1d 39 107 9 1 2d 1 e a 1d 3 20 2 16 1 e "
    "49 7 1 2 1 2c 3 1 1 2 1 9 8 a 6 6 1 2 1 25 1 2 1 6 7 a 136 19 b7 1 f 32 d 39b 66 6f 1 5 b c4 "
    "abc 42f fd1 247 21b9 239 7 1f 1 a 4 2 60 1e 2 6 a 46 a a 1 7 1 15 5 13 2b0 5b 65 4b 4 39 7 "
    "11 40 4 c 2 e 17f8 8 4d6 2a 9 22f7 11f 31 3 11 4 8 18c 904 6b 5 d 3 9 7 a 2 4 1360 f6 a 27 2 "
    "30 1 19 8 6e 17 46 9a 14 c 57 9 19 87 55 1 47 1 2 2 1 2 2 2 4 1 c 1 1 1 7 1 41 1 4 2 8 1 7 1 "
    "1c 1 4 1 5 1 1 3 7 1 154 2 124 2 2be f 5 1 f 550 7 1 11 2 7 1 2 1 5 d5 2d 3 e 2 a 4 2 170 3a "
    "5 1 500 c5 2 10 29 4c 4 a 4 2 311 44 4c 3d c2 4 1 1b 1 2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 "
    "1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 1 4 1 4 1 1 1 a 1 11 5 3 1 5 1 11 34 2 "
    "10e 2c 4 64 c f 2 f 1 f 1 25 a ae 38 1d d 2c 4 9 7 2 e 6 9a 3d8 8 d 3 d 3 74 c 59 7 c 14 c 4 "
    "38 8 a 6 28 8 1e 2 2 4e 79 1 52 1 87 c e 2 5 3 3 5 7 9 19 7 7 9 3 d 7 29 93 1 37 25 a 406 "
    "a6de 22 1035 b de 2 1682 e 1d31 c1f 21e 5e2 134b "
)


def fault(text: str) -> str | None:
    r"""Return what keeps a text from being visible, or None; the empty text has no fault.

    >>> fault("Zürich"), fault("a b")
    (None, None)
    >>> fault("Zürich\u200b")
    'U+200B is not among the visible characters'
    >>> fault("a  b")
    'spaces must stand alone and within the text'
    """
    # A space at an end, or a second one beside the first, is not seen either.
    if text[:1] == " " or text[-1:] == " " or "  " in text:
        return "spaces must stand alone and within the text"
    if text.isascii() and text.isprintable():  # U+0020 to U+007E: no need of the table
        return None
    edges = _edges()
    for character in text:
        if bisect_right(edges, ord(character)) % 2 == 0:
            return f"U+{ord(character):04X} is not among the visible characters"
    return None


def ranges() -> list[tuple[int, int]]:
    """Return the table: first and last code point of every range, ascending."""
    edges = _edges()
    return [(first, end - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


@cache
def _edges() -> list[int]:
    """Return, ascending, where visible characters begin and where they end, in turn."""
    return list(accumulate(int(run, 16) for run in _RUNS.split()))
