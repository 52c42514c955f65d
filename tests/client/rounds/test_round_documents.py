"""Campaigns and round documents: what a device accepts, and what it refuses by their numbers."""

import json
from dataclasses import replace
from math import expm1
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from scipy import stats

from client_sdk import CollectionError, ParameterError
from client_sdk.rounds import Asked, Campaign, Neighbours, RoundDocument, choose_neighbours
from client_sdk.rounds.document import least_bits
from tests.support.round_devices import a_campaign, a_round

ROOT = Path(__file__).parents[3] / "client_sdk"


def load(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


VECTORS = load("vectors/rounds/documents.json")
CAMPAIGN_SCHEMA = Draft202012Validator(load("schema/campaign-1.json"))
ROUND_SCHEMA = Draft202012Validator(load("schema/round-3.json"))
CAMPAIGNS = [Campaign.from_json(entry["text"]) for entry in VECTORS["campaigns"]]


def by_reason(entry: dict[str, str]) -> str:
    return entry["reason"]


def test_good_documents_fit_and_have_their_digests() -> None:
    for validator in (CAMPAIGN_SCHEMA, ROUND_SCHEMA):
        Draft202012Validator.check_schema(validator.schema)
    for entry in VECTORS["campaigns"]:
        CAMPAIGN_SCHEMA.validate(json.loads(entry["text"]))
        spaced = json.dumps(json.loads(entry["text"]), indent=1)
        assert Campaign.from_json(spaced, entry["digest"]).to_json() == entry["text"]
    for entry in VECTORS["rounds"]:
        ROUND_SCHEMA.validate(json.loads(entry["text"]))
        found = RoundDocument.from_json(
            json.dumps(json.loads(entry["text"]), indent=1),
            CAMPAIGNS[entry["campaign"]],
            entry["digest"],
        )
        assert found.to_json() == entry["text"]
        assert found.bits == entry["bits"]


@pytest.mark.parametrize("entry", VECTORS["bad_campaigns"], ids=by_reason)
def test_bad_campaigns_are_refused(entry: dict[str, Any]) -> None:
    if entry["kind"] == "form":
        assert not CAMPAIGN_SCHEMA.is_valid(json.loads(entry["text"]))
    with pytest.raises(CollectionError):
        Campaign.from_json(entry["text"])


@pytest.mark.parametrize("entry", VECTORS["bad_rounds"], ids=by_reason)
def test_bad_rounds_are_refused(entry: dict[str, Any]) -> None:
    if entry["kind"] != "text":
        fits = ROUND_SCHEMA.is_valid(json.loads(entry["text"]))
        assert fits == (entry["kind"] == "arithmetic")
    with pytest.raises(CollectionError):
        RoundDocument.from_json(entry["text"], CAMPAIGNS[entry["campaign"]])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"honest": 4}, "honest must be at most threshold - colluding = 3"),
        ({"threshold": 3, "shares": 3, "honest": 2}, "threshold must be 4 or more of 5"),
        ({"bits": 6}, "bits must be at least 8, or sums wrap"),
        ({"server": "honest"}, "the campaign trusts no server"),
        ({"campaign": "0" * 64}, "campaign must be the digest"),
        ({"micro_epsilon": 1_000_001}, "micro_epsilon must be at most 1000000"),
        ({"sensitivity": 4, "bits": 20}, "sensitivity must be at most 3 in its campaign"),
        ({"honest": 1}, "honest must be at least 2 in its campaign"),
    ],
)
def test_the_refusal_names_the_rule(changes: dict[str, Any], rule: str) -> None:
    campaign = a_campaign()
    good = a_round(campaign, colluding=1)
    with pytest.raises(CollectionError, match=rule):
        replace(good, **changes).verify(campaign)


def test_another_document_than_the_pinned_one_is_refused() -> None:
    campaign = a_campaign()
    with pytest.raises(CollectionError, match="the campaign document was altered"):
        Campaign.from_json(campaign.to_json(), "0" * 64)
    with pytest.raises(CollectionError, match="the round document was altered"):
        RoundDocument.from_json(a_round(campaign).to_json(), campaign, "0" * 64)
    with pytest.raises(CollectionError, match="exceeds this device's cap"):
        Campaign.from_json(campaign.to_json(), max_epsilon=0.9)
    with pytest.raises(ParameterError, match="campaign must be a Campaign"):
        RoundDocument.from_json(a_round(campaign).to_json(), "campaign")  # type: ignore[arg-type]


def test_what_clients_sign_under_is_the_document() -> None:
    campaign = a_campaign()
    first, second = a_round(campaign), a_round(campaign, asked=Asked(levels=(2,)))
    session = bytes(16)
    assert first.terms(session).document.hex() == first.digest
    digests = {document.terms(session).digest for document in (first, second)}
    renamed = a_round(a_campaign(name="another name"))  # nothing else differs
    assert len(digests | {renamed.terms(session).digest}) == 3


def test_a_circle_is_accepted_where_its_bounds_hold_and_not_below() -> None:
    campaign = a_campaign(
        server="honest", most_clients=1000, least_honest=500, colluding_ppm=100_000
    )
    chosen = choose_neighbours(1000, 900, 100)
    assert chosen is not None
    made = a_round(campaign, 1000, 900, colluding=100, neighbours=chosen, server="honest")
    assert made.neighbours == chosen
    assert made.terms(bytes(16)).honest_server
    for wrong in (Neighbours(chosen.degree, chosen.shares - 12), Neighbours(30, 16)):
        with pytest.raises(CollectionError, match="hide a client among its neighbours"):
            replace(made, degree=wrong.degree, shares=wrong.shares)


@pytest.mark.parametrize(("degree", "shares"), [(100, 2), (102, 2), (100, 60), (1 << 19, 70)])
def test_where_all_are_neighbours_as_many_shares_are_needed_as_the_threshold_says(
    degree: int, shares: int
) -> None:
    """Two of eleven who collude would open everybody's secrets by themselves."""
    campaign = a_campaign(server="honest", most_clients=101, colluding_ppm=100_000)
    for server in ("any", "honest"):
        made = a_round(campaign, 101, 70, colluding=11, server=server)
        with pytest.raises(CollectionError, match="degree and shares must be 100 and 70"):
            replace(made, degree=degree, shares=shares)


def test_a_round_that_would_take_hours_to_check_is_refused_at_once() -> None:
    campaign = a_campaign(most_clients=1 << 20)
    text = a_round(campaign, 101, 70).to_json()
    hard = {"clients": 1 << 20, "threshold": 1 << 19, "shares": 2, "colluding": 1 << 18,
            "degree": 1 << 18, "honest": 1 << 10, "bits": 60, "server": "honest"}  # fmt: skip
    text = json.dumps({**json.loads(text), **hard})
    with pytest.raises(CollectionError, match="the campaign trusts no server"):
        RoundDocument.from_json(text, campaign)
    trusting = a_campaign(most_clients=10_000, server="honest")
    text = json.dumps({**json.loads(text), "campaign": trusting.digest})
    with pytest.raises(CollectionError, match="clients must be a whole number from 2 to 10000"):
        RoundDocument.from_json(text, trusting)


@pytest.mark.parametrize(
    ("clients", "honest", "sensitivity", "micro"),
    [(10, 6, 1, 1_000_000), (100, 10, 5, 100_000), (10_000, 8_000, 3, 5_000_000), (7, 1, 1, 1)],
)
def test_with_the_least_bits_a_sum_hardly_ever_wraps(
    clients: int, honest: int, sensitivity: int, micro: int
) -> None:
    """Against the exact law: X is negative binomial, and |X - Y| reaches m only if X or Y does."""
    bits = least_bits(clients, honest, sensitivity, micro)
    room = 2 ** (bits - 1) - clients * sensitivity  # for the noise
    stop = -expm1(-micro / 1e6 / sensitivity)
    tail = stats.nbinom.sf(room - 1, clients / honest, stop)
    assert 2 * tail <= 2**-39
    # Without the margin for noise the least bits would not do.
    if micro < 10**6:
        bare = 2 ** (clients * sensitivity).bit_length() - clients * sensitivity
        assert stats.nbinom.sf(bare, clients / honest, stop) > 2**-39
