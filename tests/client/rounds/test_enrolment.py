"""Certificates of identities, requests for seats, and what a visit refuses."""

import json
from collections.abc import Generator
from copy import copy
from pathlib import Path

import pytest

from client_sdk import NotAskedError, ParameterError
from client_sdk.rounds import Ask, Identity, ProtocolError, SigningKey, Step, Told, visit
from client_sdk.rounds.enrolment import (
    Certificate,
    check_directory,
    check_identity,
    check_seat_request,
    seat_request,
)
from client_sdk.rounds.primitives import verified
from tests.support.aggregation_rounds import seeded
from tests.support.round_devices import (
    HERE,
    START,
    Session,
    a_campaign,
    a_device,
    a_round,
    joined,
    set_clock,
)

CAMPAIGN = a_campaign()
DIGEST = CAMPAIGN.digest
DIRECTORY = SigningKey(seeded(1))
OTHER, MINE = (Identity.draw(seeded(seed)) for seed in (2, 3))


def test_a_certificate_is_of_one_campaign_number_and_identity() -> None:
    made = Certificate.issue(DIRECTORY, DIGEST, 7, MINE.public)
    data = made.to_bytes()
    assert Certificate.from_bytes(data, DIRECTORY.public, DIGEST) == made
    for wrong in (
        data[:-1],
        data + b"\x00",
        (8).to_bytes(4, "big") + data[4:],
        data[:4] + OTHER.public + data[68:],
        "text",
    ):
        with pytest.raises(ProtocolError):
            Certificate.from_bytes(wrong, DIRECTORY.public, DIGEST)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="not signed by the directory"):
        Certificate.from_bytes(data, OTHER.public[:32], DIGEST)
    with pytest.raises(ProtocolError, match="not signed by the directory"):
        Certificate.from_bytes(data, DIRECTORY.public, "0" * 64)


def test_a_seat_is_asked_for_by_nobody_else_and_in_one_round() -> None:
    certificate = Certificate.issue(DIRECTORY, DIGEST, 7, MINE.public).to_bytes()
    request = seat_request(MINE, certificate, DIGEST, 3)
    assert check_seat_request(request, DIRECTORY.public, DIGEST, 3).number == 7
    stolen = seat_request(OTHER, certificate, DIGEST, 3)
    for wrong, number in ((request, 4), (stolen, 3), (request[:-1], 3), (b"", 3)):
        with pytest.raises(ProtocolError, match="a request for a seat"):
            check_seat_request(wrong, DIRECTORY.public, DIGEST, number)


ZERO, ONE, LARGEST = bytes(32), b"\x01" + bytes(31), (2**255 - 20).to_bytes(32, "little")
# A point of order 8 of Ed25519, as its y, and that of the other sign of x.
ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
SMALL_ORDER = [ZERO, ONE, LARGEST, ORDER_8, ORDER_8[:31] + b"\xfa"]


def test_keys_that_everybody_has_are_neither_identities_nor_directories(scene: "Scene") -> None:
    assert check_identity(MINE.public) == MINE.public
    assert check_directory(DIRECTORY.public) == DIRECTORY.public
    for wrong in (b"", bytes(64), MINE.public[:32], "text"):
        with pytest.raises(ParameterError, match="identity must be"):
            check_identity(wrong)
    for key in SMALL_ORDER:
        with pytest.raises(ParameterError, match="neither zeros"):
            check_identity(key + MINE.public[32:])
        with pytest.raises(ParameterError, match="directory must be a public key"):
            next(visit(scene.session.participants[0], lambda: HERE, key))
    for key in (ZERO, ONE, LARGEST):
        with pytest.raises(ParameterError, match="neither zeros"):
            check_identity(MINE.public[:32] + key)
    # For zeros anybody has a signature of anything: an empty one, for some statements.
    assert any(verified(ZERO, ONE + bytes(32), bytes([k])) for k in range(64))


# --- a visit


class Scene:
    """A visit up to where the server answers what a test wants."""

    def __init__(self, folder: Path) -> None:
        devices = [a_device(folder / str(number)) for number in range(5)]
        self.document = a_round(CAMPAIGN)
        self.session = Session([joined(device, CAMPAIGN) for device in devices], self.document)
        self.certificates = [
            Certificate.issue(DIRECTORY, DIGEST, 10 + number, key).to_bytes()
            for number, key in enumerate(self.session.keys)
        ]
        self.begin()

    def begin(self) -> None:
        """Begin a visit."""
        self.asked_where = 0

        def where() -> tuple[float, float]:
            self.asked_where += 1
            return HERE

        self.visit: Generator[Ask, Told, bool] = visit(
            self.session.participants[0], where, DIRECTORY.public
        )
        self.ask = next(self.visit)

    @classmethod
    def of(cls, before: "Scene") -> "Scene":
        """Return the visit of the same device after a restart."""
        scene = copy(before)
        scene.begin()
        return scene

    def tell(self, status: int, body: bytes = b"", retry_after_s: float = 0.0) -> Ask:
        self.ask = self.visit.send(Told(status, body, retry_after_s))
        return self.ask

    def until_seated(self) -> "Scene":
        self.tell(200, self.certificates[0])
        self.tell(200, self.document.to_json().encode())
        told = {"session": self.session.session.hex(), "number": 0, "token": "t"}
        self.tell(200, json.dumps(told).encode())
        return self

    def until_keys(self) -> "Scene":
        """Let everybody advertise; the visit is told the list of keys."""
        self.until_seated()
        self.session.take(self.ask.body)
        self.tell(204)
        for number in range(1, 5):
            self.session.take(self.session.answer(number))
        self.session.close()
        self.tell(200, self.session.inbox[0])
        return self


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    set_clock(monkeypatch, START + 10)
    return Scene(tmp_path)


@pytest.mark.parametrize("number", ["Infinity", "1e999", "null", "[" * 100_000])
def test_a_seat_that_is_none_is_refused(scene: Scene, number: str) -> None:
    scene.tell(200, scene.certificates[0])
    scene.tell(200, scene.document.to_json().encode())
    told = f'{{"session": "{scene.session.session.hex()}", "number": {number}, "token": "t"}}'
    with pytest.raises(ProtocolError, match="told of no seat"):
        scene.tell(200, told.encode())


@pytest.mark.parametrize(
    "wrong",
    [
        {"session": "00"}, {"session": ["0"]}, {"session": None}, {"number": 7}, {"number": -1},
        {"number": True}, {"number": "1"}, {"number": 1.0}, {"token": ""}, {"token": None},
        {"token": "a\r\nX-Evil: 1"}, {"token": "\u00e9"}, {"token": "t" * 201}, {"token": 5},
    ],
)  # fmt: skip
def test_a_seat_that_breaks_a_rule_is_the_servers_fault(
    scene: Scene, wrong: dict[str, object]
) -> None:
    scene.tell(200, scene.certificates[0])
    scene.tell(200, scene.document.to_json().encode())
    seat = {"session": scene.session.session.hex(), "number": 0, "token": "t"} | wrong
    with pytest.raises(ProtocolError, match="told of no seat"):
        scene.tell(200, json.dumps(seat).encode())


def test_a_visit_waits_where_it_is_told_to_and_asks_the_same_again(scene: Scene) -> None:
    first = scene.ask
    assert (first.method, first.path) == ("POST", f"/directory/{DIGEST}")
    for status, after, waits in ((503, 0.0, 1.0), (202, 7.0, 7.0), (429, 1e9, 60.0), (500, 2, 2)):
        again = scene.tell(status, b"", after)
        assert (again.body, again.path, again.wait_s) == (first.body, first.path, waits)
    assert scene.tell(200, scene.certificates[0]).path == f"/rounds/{DIGEST}/1"
    with pytest.raises(ProtocolError, match="status 404"):
        scene.tell(404)


@pytest.mark.parametrize(
    ("round_seconds", "waits"), [(60, 3.75), (90, 5.625), (8, 1), (960, 60), (10**6, 60)]
)
def test_nobody_waits_for_longer_than_half_a_step(
    tmp_path: Path, round_seconds: int, waits: float
) -> None:
    """A server whose store fails says 30 s or more, which can be longer than a step."""
    campaign = a_campaign(round_seconds=round_seconds)
    participant = joined(a_device(tmp_path / "0"), campaign)
    visiting = visit(participant, lambda: HERE, DIRECTORY.public)
    next(visiting)
    assert visiting.send(Told(503, b"", 300.0)).wait_s == waits


def test_a_round_without_a_seat_ends_a_visit(scene: Scene) -> None:
    scene.tell(200, scene.certificates[0])
    with pytest.raises(StopIteration) as end:
        scene.tell(410)
    assert end.value.value is False


def test_a_directory_that_certifies_somebody_else_is_refused(scene: Scene) -> None:
    with pytest.raises(ProtocolError, match="another identity"):
        scene.tell(200, scene.certificates[1])


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"session": 3, "number": 0, "token": "t"}'])
def test_what_is_no_seat_is_refused(scene: Scene, body: bytes) -> None:
    scene.tell(200, scene.certificates[0])
    scene.tell(200, scene.document.to_json().encode())
    with pytest.raises(ProtocolError, match="no seat"):
        scene.tell(200, body)


def test_neighbours_are_those_that_the_directory_enrolled_each_once(scene: Scene) -> None:
    scene.until_keys()
    assert scene.ask.path.endswith("/identities/0")
    assert scene.ask.body == b"".join(number.to_bytes(4, "big") for number in range(1, 5))
    ask = scene.tell(200, b"".join(scene.certificates[1:]))
    assert ask.path.endswith("/1/0")
    scene.session.take(ask.body)  # its shares


@pytest.mark.parametrize("late", [False, True])
def test_no_position_is_read_after_the_round_has_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    scene.until_keys()
    scene.session.take(scene.tell(200, b"".join(scene.certificates[1:])).body)
    for number in range(1, 5):
        scene.session.take(scene.session.answer(number))
    scene.session.close()
    scene.tell(204)
    if late:
        set_clock(monkeypatch, START + 10**9)
        with pytest.raises(NotAskedError, match="not open by its clock"):
            scene.tell(200, scene.session.inbox[0])
    else:
        assert scene.tell(200, scene.session.inbox[0]).path.endswith("/2/0")
    assert scene.asked_where == (0 if late else 1)


def test_a_device_killed_after_its_vector_goes_on_though_the_round_has_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that was away still waits for it; its epsilon is spent either way."""
    session = scene.session.until(Step.CONFIRM)
    vector = session.participants[0].resume()
    assert vector is not None
    set_clock(monkeypatch, START + 10**6)
    again = Scene.of(scene)
    assert again.until_seated().ask.path.endswith("/2/0")
    assert again.ask.body == vector[1]
    again.tell(204)
    again.tell(200, session.inbox[0])
    assert again.ask.path.endswith("/3/0")


def test_a_device_that_gave_its_last_answer_asks_again_where_the_server_is_away(
    scene: Scene,
) -> None:
    scene.session.until(None)
    again = Scene.of(scene)
    last = again.ask
    assert (last.method, last.path.rsplit("/", 2)[1:]) == ("GET", ["4", "0"])
    for status, after, waits in ((503, 0.0, 1.0), (502, 7.0, 7.0), (429, 2.0, 2.0)):
        asked = again.tell(status, b"", after)
        assert (asked.path, asked.wait_s) == (last.path, waits)
    with pytest.raises(StopIteration) as end:
        again.tell(204)
    assert end.value.value is True
    assert scene.session.participants[0].resume() is None


@pytest.mark.parametrize("which", [(1, 2, 3), (1, 2, 3, 3), (1, 2, 3, 0)])
def test_a_neighbour_who_is_missing_or_sits_twice_is_refused(
    scene: Scene, which: tuple[int, ...]
) -> None:
    scene.until_keys()
    with pytest.raises(ProtocolError, match=r"certificate|seated somebody twice"):
        scene.tell(200, b"".join(scene.certificates[number] for number in which))


def test_a_neighbour_whom_the_server_invented_is_refused(scene: Scene) -> None:
    scene.until_keys()
    invented = Certificate.issue(SigningKey(seeded(4)), DIGEST, 99, OTHER.public).to_bytes()
    with pytest.raises(ProtocolError, match="not signed by the directory"):
        scene.tell(200, b"".join([*scene.certificates[1:4], invented]))


def test_a_visit_takes_answers_only(scene: Scene) -> None:
    with pytest.raises(ParameterError, match="a visit takes a Told"):
        scene.visit.send(None)  # type: ignore[arg-type]
