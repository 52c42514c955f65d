"""Visible text: one pinned table, whatever Unicode the running Python knows."""

import importlib.util
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Collection, CollectionError, Grid, ParameterError, canonical, visible_text

SCHEMA = Path(__file__).parents[2] / "client_sdk" / "schema"
PROTOCOL = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
RANGES: list[list[int]] = json.loads((SCHEMA / "visible-1.json").read_text(encoding="ascii"))[
    "ranges"
]
VISIBLE = {code for first, last in RANGES for code in range(first, last + 1)}


def maker() -> Any:
    """Return make_visible.py as a module."""
    spec = importlib.util.spec_from_file_location("make_visible", SCHEMA / "make_visible.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_module_and_file_hold_one_table() -> None:
    assert [list(pair) for pair in visible_text.ranges()] == RANGES
    assert visible_text._RUNS.split() == maker().runs(RANGES)
    assert (SCHEMA / "visible-1.json").read_bytes() == maker().render(RANGES).encode("ascii")


def test_the_ranges_ascend_with_a_gap_between_them() -> None:
    edges = [edge for first, last in RANGES for edge in (first, last + 1)]
    assert edges == sorted(set(edges))
    assert (len(RANGES), len(VISIBLE)) == (683, 143409)


@pytest.mark.skipif(
    unicodedata.unidata_version != "13.0.0", reason="only Python 3.10 knows Unicode 13.0"
)
def test_unicode_13_gives_the_table() -> None:
    assert maker().table() == RANGES


def test_what_is_visible_in_the_table_is_visible_in_this_python() -> None:
    module = maker()
    assert all(module.is_visible(code) for code in VISIBLE)


def test_what_this_python_sees_beyond_the_table_is_what_unicode_added_since() -> None:
    added = {"14.0.0": 838, "15.0.0": 5327, "15.1.0": 5954, "16.0.0": 11139, "17.0.0": 15942}
    if unicodedata.unidata_version not in added:
        pytest.skip("how much this version of Unicode added is not known here")
    module = maker()
    younger = {code for code in range(sys.maxunicode + 1) if module.is_visible(code)} - VISIBLE
    unseen = 60  # some of what was added are format characters and the like
    assert 0 <= added[unicodedata.unidata_version] - len(younger) <= unseen


def test_every_code_point_is_judged_by_the_table() -> None:
    for code in range(sys.maxunicode + 1):
        assert (visible_text.fault(f"a{chr(code)}b") is None) == (code in VISIBLE), hex(code)


@pytest.mark.parametrize("text", [" ", " a", "a ", "a  b", "é ", " é", "é  é"])
def test_spaces_that_nobody_sees_are_faults(text: str) -> None:
    assert visible_text.fault(text) == "spaces must stand alone and within the text"


@pytest.mark.parametrize("text", ["", "a b c", "Zürich – 正午 \U0001f6b2", "e\u0301", "नमस्ते", "a"])
def test_visible_texts_have_no_fault(text: str) -> None:
    assert visible_text.fault(text) is None


@pytest.mark.parametrize(
    ("code", "what"),
    [(0x0000, "a control"), (0x007F, "delete"), (0x00A0, "no-break space"), (0x00AD, "hyphen"),
     (0x200B, "zero-width space"), (0x202E, "override"), (0x2066, "isolate"), (0x2028, "line"),
     (0x3164, "Hangul filler"), (0xD800, "surrogate"), (0xE000, "private"), (0xFE0F, "variation"),
     (0xFEFF, "byte order mark"), (0xFFFD, "replacement"), (0xFFFE, "no character"),
     (0x1D159, "null notehead"), (0xE0041, "tag"), (0xE0100, "variation"), (0x10FFFF, "the last")],
)  # fmt: skip
def test_the_error_names_the_code_point_and_not_the_text(code: int, what: str) -> None:
    with pytest.raises(CollectionError) as caught:
        canonical.label(f"a{chr(code)}b", "name", 200)
    assert str(caught.value) == (
        "name must be a text of 1 to 200 visible characters: "
        f"U+{code:04X} is not among the visible characters"
    )


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab é\u00a0\u200b\U0001f6b2\U000e0061"), max_size=6))
def test_a_name_is_accepted_where_every_character_is_visible_and_no_space_is_lost(
    name: str,
) -> None:
    seen = all(ord(character) in VISIBLE for character in name) and name.split(" ") == name.split()
    try:
        Collection.create(name, Grid.plane(0, 0, 1, 2), 2, radius=1)
    except ParameterError:
        assert not (seen and name)
    else:
        assert seen
        assert name


def test_the_protocol_lists_what_the_table_leaves_out() -> None:
    """Every range that make_visible.py takes out by hand stands in section 5."""
    section = PROTOCOL[PROTOCOL.index("## 5.") : PROTOCOL.index("## 6.")]
    module = maker()
    for first, last in [*module.IGNORABLE, *module.BLANK]:
        assert (f"U+{first:04X}" if first == last else f"U+{first:04X} to U+{last:04X}") in section
    assert "683 ranges" in section
    assert "143409 code points" in section
