"""The cases for ports: repeatable, half good and half bad, and enough to catch a wrong port."""

import contextlib
import json
import math
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from client_sdk import Collection, Series, canonical, collection, grid, report, sampling, verify
from client_sdk.conformance import answers
from client_sdk.conformance.answers import OPERATIONS, answer
from client_sdk.conformance.cases import MAKERS, case, cases
from client_sdk.conformance.dice import Dice
from client_sdk.conformance.documents import good_documents
from client_sdk.conformance.series_documents import good_series
from client_sdk.conformance.spelling import written
from client_sdk.grid import TURN, UNIT, Grid, check_position
from client_sdk.response import ResponseTable, orbit
from client_sdk.sampling import Sampler
from tests.support import wrong_series

Patch = pytest.MonkeyPatch
Json = dict[str, Any]


N_CASES = 16_000  # every wrong port below is caught within so many


@cache
def some_cases() -> list[tuple[str, str, Json]]:
    """Operation, request and answer of some requests, each with a seed of its own."""
    lines = list(cases(N_CASES, 20))
    return [(json.loads(line)["op"], line, answer(line)) for line in lines]


def test_every_operation_has_cases_and_some_of_each_are_accepted_and_refused() -> None:
    assert list(MAKERS) == list(OPERATIONS)
    for name in OPERATIONS:
        verdicts = [told["ok"] for op, _, told in some_cases() if op == name]
        assert len(verdicts) > 150
        assert set(verdicts) == {True, False}
        assert verdicts.count(True) > 0.35 * len(verdicts)
        assert verdicts.count(False) > 0.05 * len(verdicts)
    verdicts = [told["ok"] for _, _, told in some_cases()]
    assert 0.5 < verdicts.count(True) / len(verdicts) < 0.7


def test_a_case_depends_on_seed_and_number_alone() -> None:
    short, long = list(cases(10, 3)), list(cases(30, 3))
    assert long[:10] == short
    assert json.loads(long[17]) == {"id": 17, **case(3, 17)}
    assert not set(short) & set(cases(10, 4))


def test_requests_are_ascii_and_hold_no_half_of_a_pair() -> None:
    """Some languages cannot hold one in a text; a document has it as an escape, or in bytes."""
    for _, line, _ in some_cases():
        assert line.isascii()
        json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8")


def test_good_documents_are_good_in_every_spelling() -> None:
    for number, text in enumerate(good_documents()):
        made = Collection.from_json(text)
        for turn in range(20):
            other = written(json.loads(text), Dice(f"{number} {turn}"))
            assert Collection.from_json(other, made.digest) == made


def test_good_series_are_good_in_every_spelling() -> None:
    for number, text in enumerate(good_series()):
        made = Series.from_json(text)
        assert made.to_json() == text
        for turn in range(5):
            other = written(json.loads(text), Dice(f"{number} {turn}"))
            assert Series.from_json(other, made.digest) == made


def test_choices_reach_every_way_to_end() -> None:
    requests = [(json.loads(line), told) for op, line, told in some_cases() if op == "windows"]
    accepted = [(request, told) for request, told in requests if told["ok"]]
    chosen = [(request, told) for request, told in accepted if told["windows"] is not None]
    assert len(chosen) < len(accepted) < len(requests)
    assert any(told["bytes"] > 7 * request["answers"] for request, told in chosen)
    assert any(request["answers"] == request["windows"] > 5 for request, told in chosen)
    assert any(request["windows"] == 10**5 == told["windows"][-1] for request, told in chosen)


def test_draws_reach_every_part_and_every_way_to_end() -> None:
    ends = {
        (told["ok"], told.get("output") is None, told.get("bytes", 0) > 7)
        for op, _, told in some_cases()
        if op == "draw"
    }
    assert {
        (True, False, False),
        (True, False, True),
        (True, True, False),
        (False, True, False),
    } <= ends


# Ports that are wrong


def repeated_fields(patch: Patch) -> None:
    patch.setattr(canonical, "_unique", dict)


def whole_fractions(patch: Patch) -> None:
    def lenient(text: str) -> int:
        if float(text) != int(float(text)):
            raise ValueError
        return int(float(text))

    patch.setattr(canonical, "_refuse_number", lenient)


def unknown_fields(patch: Patch) -> None:
    def known(document: Json, names: set[str], what: str) -> None:
        if names - document.keys():
            raise canonical.CollectionError("missing")

    patch.setattr(canonical, "fields", known)


def minus_zero(patch: Patch) -> None:
    def strict(text: str) -> int:
        if text == "-0":
            raise canonical.CollectionError("no")
        return int(text)

    patch.setattr(canonical, "_short_integer", strict)


def a_byte_order_mark(patch: Patch) -> None:
    def stripped(field: str, value: Any) -> str:
        text = value.decode("utf-8-sig") if isinstance(value, bytes) else value
        return str(text).removeprefix("\ufeff")

    patch.setattr(answers, "_text", stripped)


def escaped_canonical_text(patch: Patch) -> None:
    patch.setattr(
        canonical, "dumps", lambda d: json.dumps(d, sort_keys=True, separators=(",", ":"))
    )


def normalised_names(patch: Patch) -> None:
    plain = canonical.label
    patch.setattr(
        canonical, "label", lambda v, *rest: unicodedata.normalize("NFC", plain(v, *rest))
    )


def names_counted_in_utf16(patch: Patch) -> None:
    plain = canonical.label

    def counted(value: Any, field: str, longest: int) -> str:
        if isinstance(value, str) and len(value.encode("utf-16-le", "replace")) > 2 * longest:
            raise canonical.CollectionError("long")
        return plain(value, field, longest)

    patch.setattr(canonical, "label", counted)


def categories_of_this_python(patch: Patch) -> None:
    def fault(text: str) -> str | None:
        spaces = text != " ".join(text.split(" ")).strip(" ") or "  " in text
        unseen = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"}
        bad = any(c != " " and unicodedata.category(c) in unseen for c in text)
        return "unseen" if bad or spaces else None

    patch.setattr(canonical.visible_text, "fault", fault)


def spaces_at_the_ends(patch: Patch) -> None:
    plain = canonical.visible_text.fault
    patch.setattr(canonical.visible_text, "fault", lambda text: plain(text.strip(" ") or "\0"))


def digests_in_capitals(patch: Patch) -> None:
    plain = Collection.verify

    def lenient(self: Collection, digest: str | None = None, cap: Any = None) -> None:
        plain(self, digest and digest.lower(), cap)

    patch.setattr(Collection, "verify", lenient)


def a_cap_that_excludes_itself(patch: Patch) -> None:
    plain = Collection.verify

    def strict(self: Collection, digest: str | None = None, cap: Any = None) -> None:
        plain(self, digest, cap)
        if cap is not None and Fraction(self.micro_epsilon, 10**6) >= cap:
            raise canonical.CollectionError("cap")

    patch.setattr(Collection, "verify", strict)


def a_bound_in_floats(patch: Patch) -> None:
    patch.setattr(verify, "exp_below", lambda e: int(Fraction(math.exp(e)) * (1 << 192)))


def no_shape(patch: Patch) -> None:
    def lengths(octant: Any) -> None:
        if not octant or not all(1 <= len(row) <= x + 1 for x, row in enumerate(octant)):
            raise canonical.CollectionError("lengths")

    patch.setattr(collection, "check_shape", lengths)
    patch.setattr(verify, "check_shape", lengths)


def a_total_modulo_2_64(patch: Patch) -> None:
    plain = ResponseTable.total_weight.func  # type: ignore[attr-defined]
    patch.setattr(ResponseTable, "total_weight", property(lambda self: plain(self) % (1 << 64)))


def any_base(patch: Patch) -> None:
    source = verify.verify_table

    def lenient(table: ResponseTable, epsilon: Fraction) -> None:
        if table.base_weight & (table.base_weight - 1):
            bound = verify.exp_below(epsilon)
            for row in table.octant:
                for weight in row:
                    if weight < table.base_weight or weight << 192 > table.base_weight * bound:
                        raise canonical.CollectionError("bound")
            return
        source(table, epsilon)

    patch.setattr(collection, "verify_table", lenient)


def units_rounded_to_even(patch: Patch) -> None:
    patch.setattr(grid, "_units", lambda value: round(value * UNIT))


def units_fused(patch: Patch) -> None:
    exact = Fraction(1, 2)
    patch.setattr(grid, "_units", lambda value: math.floor(Fraction(value) * UNIT + exact))


def units_by_division(patch: Patch) -> None:
    patch.setattr(grid, "_units", lambda value: math.floor(value / 1e-7 + 0.5))


def units_cut_off(patch: Patch) -> None:
    patch.setattr(grid, "_units", lambda value: int(value * UNIT + 0.5))


def the_turn_from_the_corner(patch: Patch) -> None:
    def offset(self: Grid, lat: float, lon: float) -> tuple[int, int]:
        y, x = check_position(lat, lon, self.kind)
        dx = grid._units(x) - self.west
        if self.kind == "geographic":
            dx %= TURN
        return grid._units(y) - self.south, dx

    patch.setattr(Grid, "_offset", offset)


def the_turn_closed_above(patch: Patch) -> None:
    def offset(self: Grid, lat: float, lon: float) -> tuple[int, int]:
        y, x = check_position(lat, lon, self.kind)
        dx = grid._units(x) - self.west
        if self.kind == "geographic":
            half = (TURN - self.width) // 2
            dx = half + self.width - (half + self.width - dx) % TURN
        return grid._units(y) - self.south, dx

    patch.setattr(Grid, "_offset", offset)


def an_outer_edge_outside(patch: Patch) -> None:
    def contains(self: Grid, lat: float, lon: float) -> bool:
        y, x = self._offset(lat, lon)
        return 0 <= y < self.height and 0 <= x < self.width

    patch.setattr(Grid, "contains", contains)


def fractions_of_cells(patch: Patch) -> None:
    plain = Sampler.draw
    patch.setattr(
        Sampler, "draw", lambda self, row, col, entropy: plain(self, int(row), int(col), entropy)
    )


def a_part_that_ends_late(patch: Patch) -> None:
    def draw(self: Sampler, row: int, col: int, entropy: Any) -> tuple[int, int]:
        table, parts = self.table, self.parts
        if type(row) is not int or type(col) is not int or not table.is_input(row, col):
            raise canonical.CollectionError("cell")
        u = sampling.below(table.total_weight, entropy)
        if u < parts.low_end:
            return table.output_cell(u // table.base_weight)
        high = u <= parts.high_end and parts.high_ends
        part, ends = (parts.high, parts.high_ends) if high else (parts.mixed, parts.mixed_ends)
        v = u - (parts.low_end if high else parts.high_end)
        drow, dcol = sampling._pick(part, ends, min(v, ends[-1] - 1))
        return row + drow, col + dcol

    patch.setattr(Sampler, "draw", draw)


def modulo_bias(patch: Patch) -> None:
    patch.setattr(
        sampling, "below", lambda bound, entropy: int.from_bytes(entropy(7), "big") % bound
    )


def bytes_from_the_wrong_end(patch: Patch) -> None:
    def below(bound: int, entropy: Any) -> int:
        while True:
            mask = (1 << (bound - 1).bit_length()) - 1
            if (value := int.from_bytes(entropy(7), "little") & mask) < bound:
                return value

    patch.setattr(sampling, "below", below)


def a_mask_of_the_total(patch: Patch) -> None:
    """The bit length of the total in place of that of total - 1: powers of two differ."""

    def below(bound: int, entropy: Any) -> int:
        while True:
            mask = (1 << bound.bit_length()) - 1
            if (value := int.from_bytes(entropy(7), "big") & mask) < bound:
                return value

    patch.setattr(sampling, "below", below)


def orbits_in_another_order(patch: Patch) -> None:
    patch.setattr(sampling, "orbit", lambda x, y: sorted(orbit(x, y), key=lambda o: (o[1], o[0])))


def outputs_in_a_box(patch: Patch) -> None:
    def is_output(self: ResponseTable, row: int, col: int) -> bool:
        return row in self.output_rows and col in self.output_rows

    patch.setattr(ResponseTable, "is_output", is_output)


def ids_in_capitals(patch: Patch) -> None:
    patch.setattr(report, "HEX", frozenset("0123456789abcdefABCDEF"))


def a_shorter_report(patch: Patch) -> None:
    patch.setattr(report, "LONGEST", 1023)


WRONG_PORTS = {
    **wrong_series.PORTS,
    "collection": [
        repeated_fields, whole_fractions, unknown_fields, minus_zero, a_byte_order_mark,
        escaped_canonical_text, normalised_names, names_counted_in_utf16,
        categories_of_this_python, spaces_at_the_ends, digests_in_capitals,
        a_cap_that_excludes_itself, a_bound_in_floats, no_shape, a_total_modulo_2_64, any_base,
    ],
    "label": [categories_of_this_python, names_counted_in_utf16, spaces_at_the_ends],
    "cell": [
        units_rounded_to_even, units_fused, units_by_division, units_cut_off,
        the_turn_from_the_corner, the_turn_closed_above, an_outer_edge_outside,
    ],
    "draw": [
        fractions_of_cells, a_part_that_ends_late, modulo_bias, bytes_from_the_wrong_end,
        a_mask_of_the_total, orbits_in_another_order,
    ],
    "report": [
        repeated_fields, whole_fractions, outputs_in_a_box, ids_in_capitals, a_shorter_report,
        minus_zero,
    ],
}  # fmt: skip


def differs(op: str) -> bool:
    """Whether the client as it is now answers a case of an operation by another verdict."""
    for name, line, right in some_cases():
        if name == op:
            told = answer(line)
            # A fault of the wrong port itself would be easy to see.
            if told["ok"] is not None and {**told, "error": ""} != {**right, "error": ""}:
                return True
    return False


def forget() -> None:
    answers._verified.cache_clear()
    answers._verified_series.cache_clear()
    answers._sampler.cache_clear()


@pytest.mark.parametrize(
    ("op", "slip"), [(op, slip) for op, slips in WRONG_PORTS.items() for slip in slips]
)
def test_a_wrong_port_is_caught(op: str, slip: Callable[[Patch], None], monkeypatch: Patch) -> None:
    some_cases()
    with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
        stack.callback(forget)
        forget()
        slip(patch)
        assert differs(op)


def test_the_client_itself_is_not_caught() -> None:
    assert not any(differs(op) for op in OPERATIONS)
