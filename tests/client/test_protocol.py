"""docs/protocol.md: its worked example and its formulas, followed to the letter."""

import json
import re
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection, Grid, Report, canonical, report, response_table
from client_sdk.exact import BITS, PI, exp_below
from client_sdk.grid import PLANE_FAR, PLANE_LIMIT
from client_sdk.sampling import Parts, Sampler
from client_sdk.testing import FixedEntropy

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
EXAMPLE = TEXT[TEXT.index("## 11. Worked example") : TEXT.index("## 12. Series")]
DOCUMENT, REPORT = re.findall(r"```json\n(.+?)\n```", EXAMPLE)
COLLECTION = Collection.create("worked example", Grid.from_bounds(41.64, -87.9, 0.36, 2), 1.4)


def pair(text: str) -> tuple[int, int]:
    row, col = re.findall(r"-?\d+", text)
    return int(row), int(col)


def test_the_document_is_canonical_and_has_its_digest() -> None:
    assert COLLECTION.to_json() == DOCUMENT
    assert Collection.from_json(DOCUMENT, COLLECTION.digest) == COLLECTION
    assert f"Its digest is `{COLLECTION.digest}`." in EXAMPLE
    documents = json.loads((ROOT / "client_sdk/vectors/documents.json").read_text())
    assert documents["good"][0]["text"] == DOCUMENT


def test_the_numbers_of_the_table() -> None:
    table, parts = COLLECTION.table, Parts(COLLECTION.table)
    assert (table.radius, table.half_widths, table.output_size) == (1, (1, 1), 16)
    assert table.base_weight == 1 << 47
    high, mixed = table.octant[1]
    for number in (
        table.base_weight, high, mixed, high - table.base_weight, mixed - table.base_weight,
        table.total_weight, parts.low_end, parts.high_ends[-1], parts.mixed_ends[-1], high + 1,
    ):  # fmt: skip
        assert re.search(rf"\b{number}\b", EXAMPLE)
    assert table.total_weight.bit_length() == 53
    assert float(table.probability(0, 0)) == pytest.approx(0.1215, abs=5e-5)
    assert float(table.max_ratio()) == pytest.approx(4.055, abs=5e-4)


def test_the_bound() -> None:
    """The loop of section 3, as it is written there."""
    m, total, term, n = 1_400_000, 0, 2**192, 0
    while term > 0:
        total = total + term
        n = n + 1
        term = term * m // (1000000 * n)
    assert total == exp_below(Fraction(7, 5))
    assert f"`{total:x}`" in EXAMPLE
    weight, base = COLLECTION.table.max_weight, COLLECTION.table.base_weight
    assert weight * 2**192 <= base * total < (weight + 1) * 2**192


def test_the_position() -> None:
    assert COLLECTION.grid.cell(41.9, -87.8) == (1, 0)
    assert COLLECTION.grid.cell(50, -100) == (1, 0)


def test_the_draws() -> None:
    rows = re.findall(r"^\| `([0-9a-f]+)` \| (.+?) \| (\(.+?\)) \|$", EXAMPLE, re.M)
    assert len(rows) == 10
    for entropy, part, output in rows:
        data = FixedEntropy(bytes.fromhex(entropy))
        assert Sampler(COLLECTION.table).draw(1, 0, data) == pair(output)
        assert data.used == len(entropy) // 2
        if "index" in part:
            index = int(part.split()[-1])
            assert COLLECTION.table.output_cell(index) == pair(output)
        elif "offset" in part:
            drow, dcol = pair(part)
            assert (1 + drow, dcol) == pair(output)


def test_the_report() -> None:
    report = Report.from_json(REPORT)
    assert report.to_json() == REPORT
    assert report.id == bytes(range(16)).hex()
    report.check(COLLECTION)


def sections_named_in(text: str) -> set[str]:
    """Return the numbers in "section 3" and in "sections 3, 5 and 12"."""
    named = re.findall(r"[Ss]ections? (\d+(?:(?:, | and | or | to )\d+)*)", " ".join(text.split()))
    return {number for numbers in named for number in re.findall(r"\d+", numbers)}


def test_sections_that_anything_refers_to_exist() -> None:
    titles = dict(re.findall(r"^## (\d+)\. (.+)$", TEXT, re.M))
    assert list(titles) == [str(n) for n in range(1, len(titles) + 1)]
    assert (titles["3"], titles["12"]) == ("Verification of a document", "Series")
    own = re.sub(r"\[privacy\.md, section \d+\]", "", TEXT)
    assert sections_named_in(own) <= set(titles)
    folders = ("client_sdk", "ldpspatial", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    files += [*(ROOT / "client_sdk/schema").glob("*.json"), *(ROOT / "docs").glob("*.md")]
    cited = set()
    for file in files:
        text = file.read_text(encoding="utf-8")
        for words in re.findall(r"protocol\.md[,)]?\s+\(?sections?\s+[^.:;()]+", text):
            assert sections_named_in(words) <= set(titles), f"{file}: {words}"
            cited |= sections_named_in(words)
    assert {"3", "5", "10"} <= cited  # references are found


def test_the_limits_are_those_of_the_code() -> None:
    schema = json.loads((ROOT / "client_sdk/schema/collection-1.json").read_text())
    fields: Any = schema["properties"]
    for limit in (
        fields["micro_epsilon"]["maximum"], fields["max_reports"]["maximum"],
        fields["grid"]["properties"]["cells"]["maximum"], fields["weights"]["maxItems"],
        fields["grid"]["then"]["properties"]["width_e7"]["maximum"],
    ):  # fmt: skip
        assert re.search(rf"\b{limit}\b", TEXT)
    for name in (*fields, *fields["grid"]["properties"]):
        assert f"`{name}`" in TEXT
    assert PLANE_LIMIT == 10**8
    assert PLANE_FAR == 4 * 10**8
    assert "limit y and x to [-4 * 10^8, 4 * 10^8]" in TEXT
    assert (canonical.LONGEST, report.LONGEST) == (2**26, 1024)
    assert "more than 2^26 code points, a report of more than 1024" in TEXT


def test_the_vectors_are_described_entry_by_entry() -> None:
    section = TEXT[TEXT.index("## 10.") : TEXT.index("## 11.")]
    for path in (ROOT / "client_sdk/vectors").glob("*.json"):
        assert f"`{path.name}`" in section
        for name, entries in json.loads(path.read_text()).items():
            assert name == "about" or f"`{name}`" in section
            for field in entries[0] if isinstance(entries[0], dict) and name != "grids" else ():
                assert f"`{field}`" in section


def test_pi_of_section_9() -> None:
    digits = re.search(r"P = (\d+) \* 2\^192 // 10\^50", TEXT)
    assert digits is not None
    assert int(digits[1]) * 2**192 // 10**50 == PI


def test_the_radius_of_section_9() -> None:
    """Its four lines, for the worked example and one more."""
    for epsilon, d in ((Fraction(7, 5), 2), (Fraction(1, 10), 128)):
        one = 1 << BITS
        e, g = exp_below(epsilon), epsilon.numerator * one // epsilon.denominator
        m = e * (e - one - g) >> 192
        k = (g * e >> 192) - e + one
        root = isqrt(((4 * k * k >> 192) + (PI * (m * k >> 192) >> 192)) << 192)
        b = d * (2 * k + root) * one // (PI * m)
        assert b == Collection.create("x", Grid.plane(0, 0, 1, d), epsilon).table.radius
        square = (d * (2 * k + root) * one) ** 2 // (PI * m) ** 2
        disk = Collection.create("x", Grid.plane(0, 0, 1, d), epsilon, "disk").table
        assert disk == response_table("disk", epsilon, d, squared_radius=square)
        assert disk.radius == isqrt(square)
