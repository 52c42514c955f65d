"""The vectors of series: followed by this client, and confirmed by what the protocol says."""

import json
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection, CollectionError, ParameterError, Series
from client_sdk.testing import FixedEntropy

FILE = Path(__file__).parents[2] / "client_sdk" / "vectors" / "series.json"
VECTORS: Any = json.loads(FILE.read_text(encoding="ascii"))
SERIES = [Series.from_json(entry["text"]) for entry in VECTORS["good"]]
Json = dict[str, Any]


def reason(entry: Json) -> str:
    return str(entry["reason"])


def canonical(document: Json) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# Documents


def test_good_series() -> None:
    for entry in VECTORS["good"]:
        series = Series.from_json(entry["text"], entry["digest"])
        assert series.to_json() == entry["canonical"] == canonical(json.loads(entry["text"]))
        assert series.digest == entry["digest"] == sha256(entry["canonical"].encode()).hexdigest()


def test_the_good_series_reach_the_limits_of_their_fields() -> None:
    documents = [json.loads(entry["text"]) for entry in VECTORS["good"]]
    for field, low, high in (
        ("first_start", 0, 253402300799), ("window_seconds", 1, 10**9), ("windows", 1, 10**5),
        ("answers", 1, 10**5),
    ):  # fmt: skip
        values = [document[field] for document in documents]
        assert (min(values), max(values)) == (low, high)
    assert max(len(document["name"]) for document in documents) == 100


@pytest.mark.parametrize("entry", VECTORS["bad"], ids=reason)
def test_bad_series(entry: Json) -> None:
    cap = entry.get("max_micro_epsilon")
    max_epsilon = None if cap is None else Fraction(cap, 10**6)
    with pytest.raises(CollectionError):
        Series.from_json(entry["text"], entry.get("digest"), max_epsilon)
    if entry["kind"] == "device":
        Series.from_json(entry["text"])  # nothing else is wrong


@pytest.mark.parametrize("entry", VECTORS["long"], ids=reason)
def test_long_series(entry: Json) -> None:
    with pytest.raises(CollectionError):
        Series.from_json("".join(part * times for part, times in entry["parts"]))


def test_a_long_series_is_refused_for_its_length_alone() -> None:
    parts = {reason(entry): entry["parts"] for entry in VECTORS["long"]}["2^26 + 1 code points"]
    assert Series.from_json("".join(part for part, _ in parts))
    assert sum(len(part) * times for part, times in parts) == 2**26 + 1


def test_bad_series_are_refused_for_their_reason() -> None:
    told = {}
    for entry in VECTORS["bad"]:
        if entry["kind"] == "device":
            continue
        with pytest.raises(CollectionError) as caught:
            Series.from_json(entry["text"])
        told[reason(entry)] = str(caught.value)
    for words, rule in (
        ("answers is one more", "answers must be at most windows = 28, got 29"),
        ("two answers", "answers must be at most windows = 1, got 2"),
        ("by one, with a total that fits", "not epsilon-LDP"),
        ("one millionth below", "not epsilon-LDP"),
        ("power of two", "base_weight must be a power of two"),
        ("the total is one larger", "total_weight must be"),
        ("the output size is one larger", "output_size must be"),
        ("a disk with a gap", "narrows from row 0 on"),
        ("85 degrees", "grid: height"),
        ("units wide", "grid: width must be a whole number from 4"),
        ("collection.name", "collection has the unknown field 'name'"),
        ("collection.schema", "collection has the unknown field 'schema'"),
        ("collection.max_reports", "collection has the unknown field 'max_reports'"),
        ("of the collection is missing", "collection lacks the field"),
        ("the tag of a letter", "U+E0061 is not among the visible characters"),
        ("a collection twice", "the field 'collection' appears twice"),
        ("once escaped", "the field 'answers' appears twice"),
        ("weights is [[[1]]]", "weights[0] must be a whole number"),
    ):
        matching = [told[reason] for reason in told if words in reason]
        assert matching, words
        assert all(rule in text for text in matching), words


# Windows


def test_windows() -> None:
    for entry in VECTORS["windows"]:
        series, k = SERIES[entry["series"]], entry["window"]
        made = series.collection(k)
        assert made.digest == entry["digest"]
        assert series.start(k) == entry["start"]
        if "canonical" in entry:
            assert made.to_json() == entry["canonical"]
            assert Collection.from_json(entry["canonical"], entry["digest"]) == made


def test_windows_are_what_the_protocol_says() -> None:
    lengths = set()
    for entry in VECTORS["windows"]:
        good, k = VECTORS["good"][entry["series"]], entry["window"]
        series = json.loads(good["text"])
        name = f"{series['name']} - window {k} of {series['windows']} - series {good['digest']}"
        own = {"schema": "ldpspatial/collection/1", "name": name, "max_reports": 1}
        text = canonical({**series["collection"], **own})
        assert entry.get("canonical", text) == text
        assert entry["digest"] == sha256(text.encode()).hexdigest()
        assert entry["start"] == series["first_start"] + (k - 1) * series["window_seconds"]
        lengths.add(len(name))
    assert max(lengths) == 200
    assert sum("canonical" in entry for entry in VECTORS["windows"]) >= 4


def test_times() -> None:
    for entry in VECTORS["times"]:
        assert SERIES[entry["series"]].window_at(entry["seconds"]) == entry["window"]
        series = json.loads(VECTORS["good"][entry["series"]]["text"])
        k = (entry["seconds"] - series["first_start"]) // series["window_seconds"] + 1
        assert entry["window"] == (k if 1 <= k <= series["windows"] else None)


def test_bad_windows() -> None:
    for entry in VECTORS["bad_windows"]:
        series = SERIES[entry["series"]]
        for call in (series.collection, series.start):
            with pytest.raises(ParameterError):
                call(entry["window"])


# Choices


def test_choices() -> None:
    model = SERIES[0]
    for entry in VECTORS["choices"]:
        series = Series(model.name, model.template, 0, 1, entry["windows"], entry["answers"])
        entropy = FixedEntropy(bytes.fromhex(entry["entropy"]))
        if entry["chosen"] is None:
            with pytest.raises(EOFError):
                series.choose(entropy)
        else:
            assert series.choose(entropy) == entry["chosen"]
        assert entropy.used == entry["bytes"]


def test_choices_are_what_the_protocol_says() -> None:
    """The loop of section 12 over the numbers of section 4, and what it comes by."""
    seen = set()
    for entry in VECTORS["choices"]:
        data, used, chosen = bytes.fromhex(entry["entropy"]), 0, set()
        for j in range(entry["windows"] - entry["answers"] + 1, entry["windows"] + 1):
            bits, u = len(f"{j - 1:b}") if j > 1 else 0, j
            while u >= j and used + 7 <= len(data):
                u = int.from_bytes(data[used : used + 7], "big") % 2**bits
                used += 7
                seen.add("thrown away" if u >= j else "taken before" if 1 + u in chosen else "new")
            if u >= j:
                seen.add("too few")
                chosen = None
                break
            chosen.add(j if 1 + u in chosen else 1 + u)
        assert entry["bytes"] == used
        assert entry["chosen"] == (chosen and sorted(chosen))
    assert seen == {"new", "taken before", "thrown away", "too few"}


def test_choices_reach_the_ends() -> None:
    sizes = {(entry["windows"], entry["answers"]) for entry in VECTORS["choices"]}
    assert (1, 1) in sizes
    assert any(windows == answers > 1 for windows, answers in sizes)
    assert max(windows for windows, _ in sizes) == 10**5
    chosen = {k for entry in VECTORS["choices"] for k in entry["chosen"] or ()}
    assert {1, 10**5} <= chosen
