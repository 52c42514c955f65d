"""Write the table of visible characters (docs/protocol.md, section 5): visible-1.json.

Run ``python3.10 client_sdk/schema/make_visible.py``: the table is made from Unicode 13.0, which
is what Python 3.10 knows, and is pinned from then on. It also prints the runs that
client_sdk/visible_text.py holds. A change of the table is a change of the protocol.
"""

import json
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path

UNICODE = "13.0.0"
FILE = Path(__file__).parent / "visible-1.json"
ABOUT = (
    "Code points that a visible text may hold (docs/protocol.md, section 5), as [first, last] "
    "pairs, ascending: what Unicode 13.0 assigns, without what is not seen. The table never "
    "changes; later characters need another version of the collection document."
)

# Controls, format, private use, surrogates, unassigned, separators. The space U+0020 comes back.
INVISIBLE_CATEGORIES = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"}

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, which Python does not know ...
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip
# ... and what has no ink although no property says so: the braille pattern without dots, the
# object replacement character, the filler of Khitan, the null notehead. U+FFFD stands for
# whatever a decoder could not read, so it says nothing to people either.
BLANK = [
    (0x2800, 0x2800), (0xFFFC, 0xFFFC), (0xFFFD, 0xFFFD), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159),
]  # fmt: skip


def is_visible(code: int) -> bool:
    """Tell by the running Python's Unicode whether a code point is assigned and seen."""
    if code == ord(" "):
        return True
    if any(first <= code <= last for first, last in [*IGNORABLE, *BLANK]):
        return False
    return unicodedata.category(chr(code)) not in INVISIBLE_CATEGORIES


def table() -> list[list[int]]:
    """Return the ranges of visible code points of the running Python."""
    seen = [False, *(is_visible(code) for code in range(sys.maxunicode + 1)), False]
    turns = [code for code, (before, now) in enumerate(pairwise(seen)) if before != now]
    return [[first, end - 1] for first, end in zip(turns[::2], turns[1::2], strict=True)]


def render(ranges: list[list[int]]) -> str:
    """Return the text of the JSON file, some ranges a line."""
    pairs = [json.dumps(pair) for pair in ranges]
    lines = [", ".join(pairs[i : i + 6]) for i in range(0, len(pairs), 6)]
    return f'{{\n"about": {json.dumps(ABOUT)},\n"ranges": [\n  ' + ",\n  ".join(lines) + "\n]\n}\n"


def runs(ranges: list[list[int]]) -> list[str]:
    """Return, in hexadecimal, how many code points in turn are left out and kept."""
    edges = [0, *(edge for first, last in ranges for edge in (first, last + 1))]
    return [f"{end - start:x}" for start, end in pairwise(edges)]


if __name__ == "__main__":
    if unicodedata.unidata_version != UNICODE:
        sys.exit(f"this needs Unicode {UNICODE}, so Python 3.10, got {unicodedata.unidata_version}")
    made = table()
    FILE.write_text(render(made), encoding="ascii", newline="\n")
    sys.stdout.write(" ".join(runs(made)) + "\n")
