"""Ports of the client that are wrong about series, bodies or events, each in one way."""

import hashlib
import hmac
import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from client_sdk import Collection, CollectionError, Report, Series, canonical, collection, series
from client_sdk.conformance import answers
from client_sdk.entropy import Entropy, below

Patch = pytest.MonkeyPatch
Json = dict[str, Any]


# Documents


def nested_three_deep(patch: Patch) -> None:
    """The depth of a collection document: every series is nested deeper."""
    plain = canonical.loads

    def shallow(text: object, what: str, longest: int) -> Json:
        document = plain(text, what, longest)
        if _depth(document) > 3:
            raise CollectionError("nested too deeply")
        return document

    patch.setattr(canonical, "loads", shallow)


def _depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inside), default=0) if isinstance(value, (dict, list)) else 0


def more_answers_than_windows(patch: Patch) -> None:
    patch.setattr(Series, "_check", lambda self: canonical.label(self.name, "name", 100))


def names_as_long_as_those_of_collections(patch: Patch) -> None:
    patch.setattr(series, "LONGEST_NAME", 200)


def a_collection_with_a_name(patch: Patch) -> None:
    plain = collection.parse_body

    def lenient(document: Any) -> Collection:
        if isinstance(document, dict):
            own = ("schema", "name", "max_reports")
            document = {field: document[field] for field in document if field not in own}
        return plain(document)

    patch.setattr(series, "parse_body", lenient)


def an_unverified_table(patch: Patch) -> None:
    def unverified(self: Series, digest: str | None = None, cap: Any = None) -> None:
        self._check()
        if digest not in (None, self.digest):
            raise CollectionError("digest")
        if cap is not None and self.template.micro_epsilon > cap * 10**6:
            raise CollectionError("cap")

    patch.setattr(Series, "verify", unverified)


def a_cap_on_the_whole_series(patch: Patch) -> None:
    plain = Series.verify

    def strict(self: Series, digest: str | None = None, cap: Any = None) -> None:
        plain(self, digest, cap)
        if cap is not None and self.answers * self.micro_epsilon > cap * 10**6:
            raise CollectionError("cap")

    patch.setattr(Series, "verify", strict)


def no_start_at_0(patch: Patch) -> None:
    patch.setattr(series, "_RANGES", (("first_start", 1, series.LAST_SECOND), *series._RANGES[1:]))


def starts_of_32_bits(patch: Patch) -> None:
    patch.setattr(series, "_RANGES", (("first_start", 0, (1 << 31) - 1), *series._RANGES[1:]))


def windows_without_limit(patch: Patch) -> None:
    first, length, *counts = series._RANGES
    endless = [(field, low, 1 << 53) for field, low, _ in counts]
    patch.setattr(series, "_RANGES", (first, length, *endless))


# The collections of windows


def _windows_named(
    patch: Patch, name: Callable[[Series, int], str], first: int = 1, **changes: Any
) -> None:
    def made(self: Series, window: Any) -> Collection:
        k = series.whole_number("window", window, first, self.windows + first - 1)
        fields = {"micro_epsilon": self.micro_epsilon, **changes}
        return Collection(name(self, k), self.template.grid, self.template.table, **fields)

    patch.setattr(Series, "collection", made)


def right_name(each: Series, k: int) -> str:
    return f"{each.name} - window {k} of {each.windows} - series {each.digest}"


def windows_counted_from_0(patch: Patch) -> None:
    _windows_named(patch, right_name, first=0)


def names_with_another_dash(patch: Patch) -> None:
    _windows_named(patch, lambda each, k: right_name(each, k).replace(" - ", " \u2013 "))


def names_with_the_digest_cut_short(patch: Patch) -> None:
    _windows_named(patch, lambda each, k: right_name(each, k)[:-52])


def names_with_padded_numbers(patch: Patch) -> None:
    width = 6
    _windows_named(
        patch,
        lambda each, k: (
            f"{each.name} - window {k:0{width}} of {each.windows} - series {each.digest}"
        ),
    )


def names_without_the_number_of_windows(patch: Patch) -> None:
    _windows_named(
        patch, lambda each, k: right_name(each, k).replace(f" of {each.windows} -", " -")
    )


def normalised_names_of_windows(patch: Patch) -> None:
    _windows_named(patch, lambda each, k: unicodedata.normalize("NFC", right_name(each, k)))


def as_many_reports_as_answers(patch: Patch) -> None:
    _windows_named(patch, right_name, max_reports=2)


# Which windows a device answers


def _chosen_by(patch: Patch, draw: Callable[[int, int, Entropy], Any]) -> None:
    patch.setattr(
        Series, "choose", lambda self, entropy: list(draw(self.windows, self.answers, entropy))
    )


def a_taken_number_drawn_again(patch: Patch) -> None:
    def draw(windows: int, answers: int, entropy: Entropy) -> list[int]:
        chosen: set[int] = set()
        while len(chosen) < answers:
            chosen.add(1 + below(windows, entropy))
        return sorted(chosen)

    _chosen_by(patch, draw)


def _floyd(
    windows: int, answers: int, entropy: Entropy, bound: int = 0, instead: Any = lambda j, k: j
) -> list[int]:
    """Run the loop of the protocol, with a bound of j and so much, and another stand-in for j."""
    chosen: list[int] = []
    for j in range(windows - answers + 1, windows + 1):
        k = 1 + below(max(j + bound, 1), entropy)
        chosen.append(instead(j, k) if k in chosen else k)
    return chosen


def j_from_one_less(patch: Patch) -> None:
    _chosen_by(patch, lambda *asked: sorted(_floyd(*asked, bound=-1)))


def j_from_one_more(patch: Patch) -> None:
    _chosen_by(patch, lambda *asked: sorted(_floyd(*asked, bound=1)))


def a_taken_number_by_the_one_before_j(patch: Patch) -> None:
    _chosen_by(patch, lambda *asked: sorted(_floyd(*asked, instead=lambda j, k: j - 1)))


def a_taken_number_by_the_next(patch: Patch) -> None:
    _chosen_by(patch, lambda *asked: sorted(_floyd(*asked, instead=lambda j, k: k % j + 1)))


def in_the_order_of_drawing(patch: Patch) -> None:
    _chosen_by(patch, _floyd)


def chosen_from_0(patch: Patch) -> None:
    _chosen_by(patch, lambda *asked: [k - 1 for k in sorted(_floyd(*asked))])


def a_partial_shuffle(patch: Patch) -> None:
    def draw(windows: int, answers: int, entropy: Entropy) -> list[int]:
        left = list(range(1, windows + 1))
        for i in range(answers):
            j = i + below(windows - i, entropy)
            left[i], left[j] = left[j], left[i]
        return sorted(left[:answers])

    _chosen_by(patch, draw)


def nothing_read_where_one_number_is_left(patch: Patch) -> None:
    patch.setattr(series, "below", lambda j, entropy: 0 if j == 1 else below(j, entropy))


def choices_modulo(patch: Patch) -> None:
    patch.setattr(series, "below", lambda j, entropy: int.from_bytes(entropy(7), "big") % j)


def choices_of_four_bytes(patch: Patch) -> None:
    patch.setattr(series, "below", lambda j, entropy: below(j, lambda n: entropy(4)))


def sorted_as_texts(patch: Patch) -> None:
    """What JavaScript does unless it is told otherwise."""
    _chosen_by(patch, lambda *asked: sorted(_floyd(*asked), key=str))


# Bodies


def a_body_of_the_canonical_length(patch: Patch) -> None:
    patch.setattr(Report, "to_body", Report.to_json)


def a_body_with_a_line_end(patch: Patch) -> None:
    patch.setattr(Report, "to_body", lambda self: self.to_json().ljust(191) + "\n")


def a_body_padded_in_front(patch: Patch) -> None:
    patch.setattr(Report, "to_body", lambda self: self.to_json().rjust(192))


def a_body_of_zero_bytes(patch: Patch) -> None:
    patch.setattr(Report, "to_body", lambda self: self.to_json().ljust(192, "\0"))


def a_body_of_the_text_that_was_read(patch: Patch) -> None:
    def body(text: Any) -> Json:
        read = answers._text("text", text)
        Report.from_json(read)
        return {"body": read.ljust(192)}

    patch.setitem(answers.OPERATIONS, "body", body)


def a_body_of_text_with_spaces(patch: Patch) -> None:
    """What json.dumps writes unless it is told otherwise."""
    patch.setattr(Report, "to_body", lambda self: json.dumps(json.loads(self.to_json())).ljust(192))


# Events


def _named_by(patch: Patch, name: Callable[[bytes, str, str], bytes]) -> None:
    plain = answers.event_name

    def wrong(key: bytes, digest: str, event: str) -> bytes:
        plain(key, digest, event)  # what is refused is refused
        return name(key, digest, event)

    patch.setattr(answers, "event_name", wrong)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def events_without_the_length(patch: Patch) -> None:
    _named_by(patch, lambda key, digest, event: _hmac(key, f"{digest}{event}"))


def events_with_another_separator(patch: Patch) -> None:
    _named_by(patch, lambda key, digest, event: _hmac(key, f"{len(digest)}:{digest}:{event}"))


def events_with_the_length_of_a_digest(patch: Patch) -> None:
    _named_by(patch, lambda key, digest, event: _hmac(key, f"64:{digest}{event}"))


def events_with_a_length_in_hexadecimal(patch: Patch) -> None:
    _named_by(patch, lambda key, digest, event: _hmac(key, f"{len(digest):x}:{digest}{event}"))


def normalised_events(patch: Patch) -> None:
    _named_by(
        patch,
        lambda key, digest, event: _hmac(
            key, f"{len(digest)}:{digest}{unicodedata.normalize('NFC', event)}"
        ),
    )


def stripped_events(patch: Patch) -> None:
    _named_by(
        patch, lambda key, digest, event: _hmac(key, f"{len(digest)}:{digest}{event.strip()}")
    )


def events_in_latin_1(patch: Patch) -> None:
    def name(key: bytes, digest: str, event: str) -> bytes:
        text = f"{len(digest)}:{digest}{event}"
        return hmac.digest(key, text.encode("latin-1", "replace"), "sha256")

    _named_by(patch, name)


def events_in_utf_8_without_pairs(patch: Patch) -> None:
    """CESU-8: what a language with UTF-16 texts writes when it encodes unit by unit."""

    def name(key: bytes, digest: str, event: str) -> bytes:
        units = f"{len(digest)}:{digest}{event}".encode("utf-16-be")
        codes = (units[i : i + 2].decode("utf-16-be", "surrogatepass") for i in
                 range(0, len(units), 2))  # fmt: skip
        data = b"".join(code.encode("utf-8", "surrogatepass") for code in codes)
        return hmac.digest(key, data, "sha256")

    _named_by(patch, name)


def events_under_the_key_as_text(patch: Patch) -> None:
    _named_by(
        patch,
        lambda key, digest, event: _hmac(key.hex().encode(), f"{len(digest)}:{digest}{event}"),
    )


def events_hashed_without_hmac(patch: Patch) -> None:
    _named_by(
        patch,
        lambda key, digest, event: hashlib.sha256(
            key + f"{len(digest)}:{digest}{event}".encode()
        ).digest(),
    )


PORTS: dict[str, list[Callable[[Patch], None]]] = {
    "series": [
        nested_three_deep, more_answers_than_windows, names_as_long_as_those_of_collections,
        a_collection_with_a_name, an_unverified_table, a_cap_on_the_whole_series,
        no_start_at_0, starts_of_32_bits, windows_without_limit,
    ],
    "window": [
        windows_counted_from_0, names_with_another_dash, names_with_the_digest_cut_short,
        names_with_padded_numbers, names_without_the_number_of_windows,
        normalised_names_of_windows, as_many_reports_as_answers,
    ],
    "windows": [
        more_answers_than_windows, a_taken_number_drawn_again, j_from_one_less, j_from_one_more,
        a_taken_number_by_the_one_before_j, a_taken_number_by_the_next, in_the_order_of_drawing,
        chosen_from_0, a_partial_shuffle, nothing_read_where_one_number_is_left, choices_modulo,
        choices_of_four_bytes, sorted_as_texts,
    ],
    "body": [
        a_body_of_the_canonical_length, a_body_with_a_line_end, a_body_padded_in_front,
        a_body_of_zero_bytes, a_body_of_the_text_that_was_read, a_body_of_text_with_spaces,
    ],
    "event": [
        events_without_the_length, events_with_another_separator,
        events_with_the_length_of_a_digest, events_with_a_length_in_hexadecimal,
        normalised_events, stripped_events, events_in_latin_1, events_in_utf_8_without_pairs,
        events_under_the_key_as_text, events_hashed_without_hmac,
    ],
}  # fmt: skip
