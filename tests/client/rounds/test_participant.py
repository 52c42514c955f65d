"""A device in a round: it spends once, sends one vector, and goes on after every kill."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from client_sdk import (
    AlreadyGivenError,
    BudgetError,
    CollectionError,
    Device,
    LedgerError,
    NotAskedError,
    ParameterError,
    PositionError,
    ledger_file,
)
from client_sdk.rounds import Asked, Client, Participant, ProtocolError, RoundDocument, Step
from client_sdk.rounds import client as client_module
from client_sdk.rounds.keys import check_advert
from client_sdk.rounds.messages import KeyAdvert, KeyList, SharesIn, SharesOut
from client_sdk.rounds.noise import client_vector
from tests.support.round_devices import (
    HERE,
    SESSION,
    START,
    Session,
    a_campaign,
    a_device,
    a_round,
    joined,
    set_clock,
)

CAMPAIGN = a_campaign()
DOCUMENT = a_round(CAMPAIGN)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, START + 10)


def a_session(folder: Path, count: int = 5) -> Session:
    devices = [a_device(folder / str(number)) for number in range(count)]
    return Session([joined(device, CAMPAIGN) for device in devices], DOCUMENT)


def test_a_session_of_devices_sums_their_vectors_under_noise(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(None, 4)
    total = session.server.total()
    half = session.terms.modulus // 2
    signed = (total + half) % session.terms.modulus - half
    assert session.server.survivors == {0, 1, 2, 3}
    assert signed.shape == (4,)
    assert abs(int(signed.sum()) - 4) < 60  # of four positions; noise of deviation 1.4 an element
    for number, participant in enumerate(session.participants):
        assert participant.spent() == (0 if number == 4 else 1_000_000)
        assert participant.due is (Step.MASK if number == 4 else None)
    session.participants[0].finish()
    assert session.participants[0].resume() is None


def test_without_noise_the_sum_is_that_of_the_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the vectors are those of the positions: the noise is what hides them."""
    monkeypatch.setattr(
        "client_sdk.rounds.participant.client_vector", lambda own, *_: [int(k) for k in own]
    )
    session = a_session(tmp_path).until(None, 4)
    row, column = CAMPAIGN.grid.cell(*HERE)
    assert session.server.total().tolist() == [
        4 * (k == 2 * (row // 4) + column // 4) for k in range(4)
    ]


class Died(BaseException):
    """What stands for the end of a process."""


def dying(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Let the next commit be the last act of the process: before it, after it, or half way."""
    commit = ledger_file.Transaction.commit

    def last(self: ledger_file.Transaction) -> None:
        if when != "before":
            commit(self)
        raise Died

    def cut(*_: object) -> None:
        raise Died

    if when == "half way":  # SQLite has committed, and nothing beside the file says so
        monkeypatch.setattr(ledger_file, "seal", cut)
    else:
        monkeypatch.setattr(ledger_file.Transaction, "commit", last)


def test_what_the_ledger_did_not_take_or_took_from_others_is_not_gone_on_from(
    tmp_path: Path,
) -> None:
    """Two objects of one device answer by turns, and each commit fails first."""
    session = a_session(tmp_path)
    both = [session.participants[0], Participant.open(Device.open(tmp_path / "0"), CAMPAIGN.digest)]
    for step in Step:
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, "before")
            with pytest.raises(Died):
                session.answer(0, both[step % 2])
        first = session.answer(0, both[step % 2])
        assert session.answer(0, both[1 - step % 2]) == first
        for number in range(1, 5):
            session.take(session.answer(number))
        session.take(first)
        session.close()
    assert session.server.survivors == set(range(5))


def secrets_of(client: Client) -> set[bytes]:
    """Return the keys and shares that a client holds, and its own secrets."""
    held = {key for keys in client._pairs.values() for key in keys}
    for name in ("_seed_shares", "_key_shares"):
        held |= {number.to_bytes(16, "big") for number in getattr(client, name, {}).values()}
    return {*held, getattr(client, "_seed", b""), getattr(client, "_mask_secret", b"")} - {b""}


def test_a_client_in_memory_holds_no_more_secrets_than_the_ledger(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    # Keys and shares of four others, a share of its own, two secrets: each dropped in its turn.
    for step, count in zip(Step, (1, 4 * 3 + 1 + 2, 4 * 2 + 9, 4 + 9, 0), strict=True):
        for number in range(5):
            session.take(session.answer(number))
        session.close()
        participant = session.participants[0]
        assert participant._last is not None
        _, state, client = participant._last
        assert client is not None
        again = Client.restored(session.terms, 0, state["client"])
        assert secrets_of(client) == secrets_of(again)
        assert len(secrets_of(client)) == count, step
    participant.finish()
    assert participant._last is None


@pytest.mark.parametrize("when", ["before", "half way", "after"])
def test_a_process_killed_at_any_message_goes_on_with_the_very_same_bytes(
    tmp_path: Path, when: str
) -> None:
    """One device dies at every message, around the commit, and again before its answer is sent."""
    session = a_session(tmp_path)
    for step in Step:
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, when)
            with pytest.raises(Died):
                session.answer(0)
        device = Device.open(tmp_path / "0")  # a new process
        again = Participant.open(device, CAMPAIGN.digest)
        # Nothing had left: before the commit the device may answer anew, after it it must not.
        kept = again.resume()
        first = session.answer(0, again)
        assert (kept == (step, first)) == (when != "before")
        # Killed between the answer and its sending, and asked again: the same bytes.
        reopened = Participant.open(Device.open(tmp_path / "0"), CAMPAIGN.digest)
        assert reopened.resume() == (step, first)
        assert session.answer(0, reopened) == first
        assert device.spent() == (0 if step < Step.MASK else 1_000_000)
        session.participants[0] = reopened
        session.take(first)
        for number in range(1, 5):
            session.take(session.answer(number))
        session.close()
    assert session.server.total().shape == (4,)
    assert session.participants[0].spent() == 1_000_000


def test_the_vector_is_masked_and_paid_for_in_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session(tmp_path).until(Step.MASK)
    one = session.participants[0]
    with pytest.MonkeyPatch.context() as patch:
        dying(patch, "before")
        with pytest.raises(Died):
            session.answer(0)
    assert (one.spent(), one.due) == (0, Step.MASK)
    answers = {session.answer(0), session.answer(0)}
    assert len(answers) == 1
    assert one.spent() == 1_000_000
    state = Device.open(tmp_path / "0")._ledger.state(CAMPAIGN.digest)
    assert state is not None
    for secret in ("mask_secret", '"seed"'):
        assert secret not in state
    assert '"agreement":""' in state  # nobody who finds it later opens what was sealed for it
    monkeypatch.setattr(
        client_module.Client, "mask", lambda *_: pytest.fail("a second vector was masked")
    )
    assert session.answer(0) in answers


def test_others_use_the_ledger_while_noise_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise of long vectors takes seconds on a phone, and reports would wait as long."""
    session = a_session(tmp_path).until(Step.MASK)
    device = Device.open(tmp_path / "0")
    drawn = []

    def slow(own: Sequence[int], *how: Any) -> list[int]:
        other = Thread(target=lambda: drawn.append(device.remaining()))
        other.start()
        other.join(5)
        return client_vector(own, *how)

    monkeypatch.setattr("client_sdk.rounds.participant.client_vector", slow)
    answer = session.answer(0)
    assert drawn == [device.remaining() + 1_000_000]
    assert session.answer(0) == answer
    assert len(drawn) == 1  # an answer that was given needs no noise


REAL_KILL = """
import json, os, signal, sys
from client_sdk import Device, ledger_file
from client_sdk.rounds import Participant, participant
folder, digest, step, before, document, session, data, keys = sys.argv[1:9]
participant.time.time = lambda: {now}
one = Participant.open(Device.open(folder), digest)
commit = ledger_file.Transaction.commit
def last(self):
    if before == "no":
        commit(self)
    os.kill(os.getpid(), signal.SIGKILL)
ledger_file.Transaction.commit = last
message = bytes.fromhex(data)
identities = [bytes.fromhex(key) for key in json.loads(keys)]
if step == "0":
    one.begin(document, bytes.fromhex(session), 0)
elif step == "1":
    one.share(message, lambda numbers: dict((k, identities[k]) for k in numbers))
elif step == "2":
    one.mask(message, *{here})
elif step == "3":
    one.confirm(message)
else:
    one.reveal(message)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("before", ["yes", "no"])
@pytest.mark.parametrize("step", list(Step))
def test_a_process_that_is_really_killed_leaves_one_answer(
    tmp_path: Path, step: Step, before: str
) -> None:
    session = a_session(tmp_path).until(step)
    spent = session.participants[0].spent()
    arguments = [
        str(tmp_path / "0"), CAMPAIGN.digest, str(int(step)), before, DOCUMENT.to_json(),
        SESSION.hex(), session.inbox[0].hex(), json.dumps([key.hex() for key in session.keys]),
    ]  # fmt: skip
    script = REAL_KILL.format(now=START + 10, here=HERE)
    run = subprocess.run([sys.executable, "-c", script, *arguments], check=False)
    assert run.returncode == -signal.SIGKILL
    after = Participant.open(Device.open(tmp_path / "0"), CAMPAIGN.digest)
    masked = step > Step.MASK or (step is Step.MASK and before == "no")
    assert after.spent() == (1_000_000 if masked else 0) >= spent
    kept = after.resume()
    session.participants[0] = after
    if before == "no":
        assert kept == (step, session.answer(0))
    else:
        assert kept is None if step is Step.ADVERTISE else kept is not None and kept[0] == step - 1
    session.until(None)
    assert session.server.survivors == set(range(5))
    assert after.spent() == 1_000_000


def test_which_round_is_drawn_once_and_uniformly(tmp_path: Path) -> None:
    campaign = a_campaign(rounds=3)
    device = a_device(tmp_path / "one")
    numbers = {joined(device, campaign).number for _ in range(3)}
    assert len(numbers) == 1
    assert Participant.open(Device.open(tmp_path / "one"), campaign.digest).number in numbers
    # 6,000 draws, 2 degrees of freedom: beyond 27.6 with probability 1e-6. A draw that is never
    # the last round would be at 3,000.
    counts = np.bincount([campaign.choose(os.urandom)[0] for _ in range(6000)], minlength=4)[1:]
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.6


def test_a_round_of_another_cohort_or_time_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = joined(a_device(tmp_path / "0"), CAMPAIGN)
    for seconds in (START - 1, START + 3600):
        set_clock(monkeypatch, seconds)
        assert not one.is_open()
        with pytest.raises(NotAskedError, match="not open by its clock"):
            one.begin(DOCUMENT.to_json(), SESSION, 0)
    two = a_campaign(rounds=2, round_seconds=10**6)
    set_clock(monkeypatch, START + 10)
    other = joined(a_device(tmp_path / "1"), two)
    other.number = 2
    with pytest.raises(NotAskedError, match="another round"):
        other.begin(a_round(two).to_json(), SESSION, 0)


def test_a_window_that_closes_lets_no_vector_leave_and_lets_the_rest_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session(tmp_path).until(Step.MASK)
    set_clock(monkeypatch, START + 3600)
    with pytest.raises(NotAskedError):
        session.answer(0)
    assert session.participants[0].spent() == 0
    set_clock(monkeypatch, START + 3599)
    session.until(Step.CONFIRM)
    set_clock(monkeypatch, START + 10**6)
    session.until(None)
    assert session.server.total().shape == (4,)


def test_a_second_session_gets_no_second_vector(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(Step.MASK)
    one = session.participants[0]
    # Before its vector: the first session is given up, and cannot be gone back to.
    second = b"another session!"
    one.begin(DOCUMENT.to_json(), second, 0)
    with pytest.raises(ProtocolError, match="does not answer round 2"):
        session.answer(0)
    with pytest.raises(ProtocolError, match="begun before"):
        one.begin(DOCUMENT.to_json(), SESSION, 0)
    # After it: none any more.
    session.answer(1)
    with pytest.raises(AlreadyGivenError):
        session.participants[1].begin(DOCUMENT.to_json(), second, 1)
    assert session.participants[1].spent() == 1_000_000


def test_sessions_without_an_end_are_refused_at_last(tmp_path: Path) -> None:
    one = joined(a_device(tmp_path), CAMPAIGN)
    for k in range(16):
        one.begin(DOCUMENT.to_json(), k.to_bytes(16, "big"), 0)
    with pytest.raises(ProtocolError, match="has begun 16 sessions"):
        one.begin(DOCUMENT.to_json(), SESSION, 0)


def test_the_same_session_under_other_terms_is_refused(tmp_path: Path) -> None:
    one = joined(a_device(tmp_path), CAMPAIGN)
    first = one.begin(DOCUMENT.to_json(), SESSION, 0)
    assert one.begin(DOCUMENT.to_json(), SESSION, 0) == first
    with pytest.raises(ProtocolError, match="under other terms"):
        one.begin(DOCUMENT.to_json(), SESSION, 1)
    with pytest.raises(ProtocolError, match="under other terms"):
        one.begin(a_round(CAMPAIGN, threshold=5).to_json(), SESSION, 0)


@pytest.mark.parametrize("step", [Step.SHARE, Step.MASK, Step.CONFIRM, Step.REVEAL])
def test_two_messages_in_one_round_end_the_session_for_good(tmp_path: Path, step: Step) -> None:
    """A server that asks twice, to hear a second answer, hears none; nor after a restart."""
    session = a_session(tmp_path).until(step)
    session.answer(0)
    other = session.inbox[0][:-1] + bytes([session.inbox[0][-1] ^ 1])
    session.inbox = {**session.inbox, 0: other}
    again = Participant.open(Device.open(tmp_path / "0"), CAMPAIGN.digest)
    with pytest.raises(ProtocolError, match=f"two messages in round {step.value}"):
        session.answer(0, again)
    assert again.resume() is None
    assert again.due is None
    with pytest.raises(ProtocolError, match="two messages"):
        session.answer(0)


def test_a_message_that_breaks_the_protocol_is_the_end_and_a_later_one_is_not(
    tmp_path: Path,
) -> None:
    session = a_session(tmp_path).until(Step.SHARE)
    with pytest.raises(ProtocolError, match="does not answer round 3"):
        session.participants[0].confirm(b"too early")
    assert session.participants[0].due is Step.SHARE
    session.answer(0)
    with pytest.raises(ProtocolError, match="too short"):
        session.participants[0].mask(b"rubbish", *HERE)
    assert session.participants[0].due is None
    assert session.participants[0].spent() == 0


@pytest.mark.parametrize("step", list(Step)[1:])
def test_what_was_sent_in_another_session_or_round_is_not_answered(
    tmp_path: Path, step: Step
) -> None:
    """A server replays what it sent, to the same seat, in another session of the same round."""
    devices = [joined(a_device(tmp_path / f"other {k}"), CAMPAIGN) for k in range(5)]
    earlier = Session(devices, DOCUMENT, b"another session!").until(step).inbox
    again = a_session(tmp_path).until(step)
    answered = again.inbox
    again.inbox = earlier
    with pytest.raises(ProtocolError, match="of another session, round or client"):
        again.answer(0)
    assert again.participants[0].due is None
    again.inbox = {k: answered[(k + 1) % 5] for k in range(5)}  # that of another client
    with pytest.raises(ProtocolError, match="of another session, round or client"):
        again.answer(1)
    again.inbox = {2: bytes([answered[2][0] ^ 1]) + answered[2][1:]}
    with pytest.raises(ProtocolError, match="a message of another round"):
        again.answer(2)


def test_devices_who_were_told_of_two_rounds_under_one_session_open_nothing_of_each_other(
    tmp_path: Path,
) -> None:
    """The server gives two of five a document that asks for other squares, and passes all on.

    Nothing else differs, and it writes the terms of their receivers into all messages. They are
    refused before a mask is made.
    """
    session = a_session(tmp_path)
    other = a_round(CAMPAIGN, asked=Asked(nodes=((1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 3, 3))))
    told = [DOCUMENT, DOCUMENT, DOCUMENT, other, other]
    terms = [document.terms(SESSION) for document in told]
    assert replace(terms[4], document=terms[0].document) == terms[0]

    adverts = {}
    for number, (one, document) in enumerate(zip(session.participants, told, strict=True)):
        data = one.begin(document.to_json(), SESSION, number)
        adverts[number] = KeyAdvert.from_bytes(data, terms[number])
    # Its own key is signed for other terms: an honest server takes it from neither side.
    with pytest.raises(ProtocolError, match="not signed by it"):
        check_advert(terms[0], adverts[4], dict(enumerate(session.keys)))

    keys = tuple((number, advert.mask_key) for number, advert in adverts.items())
    sealed: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(5)}
    for number, one in enumerate(session.participants):
        listed = KeyList(terms[number].digest, number, keys).to_bytes()
        out = SharesOut.from_bytes(one.share(listed, session.identities), terms[number])
        for receiver, share in zip([k for k in range(5) if k != number], out.sealed, strict=True):
            sealed[receiver].append((number, share))
    for number, one in enumerate(session.participants):
        message = SharesIn(terms[number].digest, number, tuple(sealed[number])).to_bytes()
        with pytest.raises(ProtocolError, match="encrypted shares were altered"):
            one.mask(message, *HERE)
        assert one.spent() == 0


def test_one_digest_is_one_document(tmp_path: Path) -> None:
    """Another text under a digest is refused, and so is a second document in a running session."""
    other = a_round(CAMPAIGN, asked=Asked(levels=(2,)))
    with pytest.raises(CollectionError, match="the round document was altered"):
        RoundDocument.from_json(other.to_json(), CAMPAIGN, DOCUMENT.digest)
    session = a_session(tmp_path).until(Step.MASK)
    one = session.participants[0]
    with pytest.raises(ProtocolError, match="under other terms"):
        one.begin(other.to_json(), SESSION, 0)
    assert session.answer(0)  # it goes on under the first


def test_keys_of_a_neighbour_that_the_directory_does_not_know_are_refused(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(Step.SHARE)
    session.keys[3] = session.keys[3][:32] + bytes(32)
    with pytest.raises(ProtocolError, match="not a valid X25519 key"):
        session.answer(0)
    one = session.participants[1]
    with pytest.raises(ParameterError, match="identities must be 64 bytes"):
        one.share(session.inbox[1], lambda numbers: dict.fromkeys(numbers, b"short"))
    with pytest.raises(ParameterError, match="identities must return a mapping, got NoneType"):
        one.share(session.inbox[1], lambda _: None)
    with pytest.raises(OSError, match="no network"):
        one.share(session.inbox[1], _no_network)
    assert one.due is Step.SHARE  # what the directory could not tell ends nothing


def _no_network(numbers: list[int]) -> dict[int, bytes]:
    raise OSError("no network")


def test_a_ledger_without_room_gives_no_vector(tmp_path: Path) -> None:
    poor = joined(a_device(tmp_path / "poor", cap=0.5), CAMPAIGN)
    with pytest.raises(BudgetError):
        poor.begin(DOCUMENT.to_json(), SESSION, 0)
    session = a_session(tmp_path).until(Step.MASK)
    device = Device.open(tmp_path / "0")
    device._ledger.spend("elsewhere", 7_500_000, None, lambda: ("id", "report"))
    with pytest.raises(BudgetError, match="cap over all collections"):
        session.answer(0)
    assert session.participants[0].spent() == 0


@pytest.mark.parametrize("number", [True, "0", 0.0, -1, 5])
def test_a_number_that_no_client_has_is_refused(tmp_path: Path, number: object) -> None:
    one = joined(a_device(tmp_path / "one"), CAMPAIGN)
    with pytest.raises(ParameterError, match="number must be a whole number from 0 to 4"):
        one.begin(DOCUMENT.to_json(), SESSION, number)  # type: ignore[arg-type]
    assert one.seat is None


def test_rounds_that_cannot_be_begun_leave_nothing_on_the_disk(tmp_path: Path) -> None:
    """A server that sends documents without end fills no disk: of these the first alone is kept."""
    session = a_session(tmp_path).until(Step.CONFIRM)
    poor = joined(a_device(tmp_path / "poor", cap=0.5), CAMPAIGN)
    for clients in range(6, 10):
        other = a_round(CAMPAIGN, clients, clients - 1)
        for one, error in ((session.participants[0], AlreadyGivenError), (poor, BudgetError)):
            with pytest.raises(error):
                one.begin(other.to_json(), os.urandom(16), 0)
            assert one._ledger.joined(other.digest) is None
    assert session.participants[0]._ledger.joined(DOCUMENT.digest) is not None


def test_a_position_that_is_none_changes_nothing(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(Step.MASK)
    with pytest.raises(PositionError):
        session.participants[0].mask(session.inbox[0], float("nan"), 0.0)
    assert session.participants[0].due is Step.MASK
    assert session.answer(0)


def test_a_copy_of_the_ledger_answers_nothing(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(Step.MASK)
    source = tmp_path / "0" / "ledger.db"
    before = source.read_bytes()
    session.answer(0)
    source.write_bytes(before)  # back to the time before the vector
    with pytest.raises(LedgerError):
        Participant.open(Device.open(tmp_path / "0"), CAMPAIGN.digest)


@pytest.mark.parametrize("left", [0, 1, 100, 4096, -4096, -1])
def test_a_truncated_state_is_refused_and_no_second_vector_leaves(
    tmp_path: Path, left: int
) -> None:
    """Cut after the vector: nothing is answered, neither as before it nor as if nothing were."""
    session = a_session(tmp_path).until(Step.CONFIRM)
    folder = tmp_path / "0"
    data = (folder / "ledger.db").read_bytes()
    (folder / "ledger.db").write_bytes(data[:left])

    def again() -> Participant:
        return Participant.open(Device.open(folder), CAMPAIGN.digest)

    for call in (
        lambda: session.answer(0),
        lambda: again().resume(),
        lambda: again().begin(DOCUMENT.to_json(), b"another session!", 0),
        lambda: joined(Device.open(folder), CAMPAIGN),
    ):
        with pytest.raises(LedgerError):
            call()


@pytest.mark.parametrize(
    "statement",
    ["UPDATE rounds SET state = replace(state, '\"spent\":1', '\"spent\":0')", "DROP TABLE rounds"],
)
def test_a_state_that_somebody_edits_is_noticed(tmp_path: Path, statement: str) -> None:
    session = a_session(tmp_path).until(Step.CONFIRM)
    with closing(sqlite3.connect(tmp_path / "0" / "ledger.db")) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(LedgerError):
        session.answer(0)


@pytest.mark.parametrize(
    "call",
    [
        lambda device: Participant.open(device, CAMPAIGN.digest),
        lambda device: Participant.join(device, CAMPAIGN.to_json(), digest="0" * 64, max_epsilon=1),
        lambda device: Participant.join(
            device, CAMPAIGN.to_json(), digest=CAMPAIGN.digest, max_epsilon=0.5
        ),
    ],
)
def test_what_was_not_joined(tmp_path: Path, call: Callable[[Device], object]) -> None:
    with pytest.raises(CollectionError):
        call(a_device(tmp_path))


def make_earlier(device: Device, *changes: tuple[str, str]) -> None:
    def earlier(state: str | None) -> tuple[str, int]:
        assert state is not None
        for now, before in (('"protocol":5,', ""), *changes):
            assert now in state
            state = state.replace(now, before)
        return state, 0

    device._ledger.advance(CAMPAIGN.digest, earlier, CAMPAIGN.micro_epsilon)


def test_keys_of_an_earlier_version_are_shown_to_nobody(tmp_path: Path) -> None:
    """There the field of the identity held a private key."""
    device = a_device(tmp_path)
    joined(device, CAMPAIGN)
    make_earlier(device, ('"public":', '"identity":'))
    with pytest.raises(CollectionError, match="earlier version"):
        joined(device, CAMPAIGN)


def test_a_session_of_an_earlier_version_is_over_and_another_may_be_begun(tmp_path: Path) -> None:
    session = a_session(tmp_path).until(Step.SHARE)
    one, before = session.participants[0], session.participants[0].identity
    make_earlier(Device.open(tmp_path / "0"))
    assert one.due is one.resume() is None
    with pytest.raises(ProtocolError, match="begun under an earlier version of the protocol"):
        session.answer(0)
    assert one.identity == before
    one.begin(DOCUMENT.to_json(), b"another session.", 0)
    assert one.due is Step.SHARE


def test_a_tree_counts_the_deepest_node_around_a_position() -> None:
    asked = Asked(nodes=((0, 0, 0), (1, 0, 1), (3, 2, 4), (3, 7, 7)))
    assert asked.ones(3, 2, 4) == [2]
    assert asked.ones(3, 3, 5) == [1]
    assert asked.ones(3, 6, 7) == [0]
    assert asked.vector(3, 7, 7) == [0, 0, 0, 1]
    assert Asked(nodes=((1, 0, 0),)).ones(3, 7, 7) == []
    assert Asked(levels=(0, 2)).ones(3, 7, 7) == [0, 16]
