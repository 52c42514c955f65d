"""Participant: a device in one round of a campaign, across restarts.

It stands between an app and the server of a round. What it has answered last, and what it needs to
answer next, lie in the device's ledger, moved on in one transaction a message and on the disk
before the answer is handed out. So a process that dies anywhere goes on with the very same bytes:
it never sends a second vector, and never reveals both shares of one client. The masked vector is
stored in the transaction that debits what it costs.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256

import numpy as np

from client_sdk import entropy
from client_sdk.device import Device
from client_sdk.errors import (
    CollectionError,
    NotAskedError,
    ParameterError,
)
from client_sdk.rounds import kept
from client_sdk.rounds.campaign import Campaign
from client_sdk.rounds.client import Client
from client_sdk.rounds.document import RoundDocument
from client_sdk.rounds.enrolment import seat_request
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.kept import State
from client_sdk.rounds.messages import Confirmations, KeyList, SharesIn, Survivors
from client_sdk.rounds.noise import client_vector
from client_sdk.rounds.primitives import IDENTITY_BYTES, KEY_BYTES, SigningKey
from client_sdk.rounds.terms import SESSION_BYTES, Step
from client_sdk.rounds.wire import Message, as_text
from client_sdk.validate import shown, whole_number, written_epsilon

Identities = Callable[[list[int]], Mapping[int, bytes]]
Respond = Callable[[Client, bytes, RoundDocument], Message]
Moved = tuple[State, int, "Client | None"]  # as kept, what that spends, and the client it is of


class Participant:
    """One device in one campaign; made by :meth:`join`, after a restart by :meth:`open`.

    A session goes :meth:`begin`, :meth:`share`, :meth:`mask`, :meth:`confirm`, :meth:`reveal`. Each
    takes the server's bytes and returns those to send; called again with the same bytes it returns
    the same. :meth:`resume` gives the last answer after a restart, :attr:`due` what comes next.
    What a message breaks ends the session for good (ProtocolError). All of it is safe to call from
    several threads and processes.

    Parameters
    ----------
    device : Device
    campaign : Campaign
        Joined before.
    number : int
        Which round it takes part in.

    Attributes
    ----------
    campaign : Campaign
    number : int
        Drawn by the device, once. Together with who takes part when it is all that a server sees of
        the choice.
    """

    def __init__(self, device: Device, campaign: Campaign, number: int) -> None:
        self._ledger = device._ledger
        self.campaign = campaign
        self.number = number
        self._documents: dict[str, RoundDocument] = {}
        # State as text, read, and the client that it is of: what the last answer left.
        self._last: tuple[str, State, Client | None] | None = None

    @classmethod
    def join(
        cls, device: Device, document: str, *, digest: str, max_epsilon: object
    ) -> "Participant":
        """Take part in a campaign: draw which of its rounds, and an identity; once.

        Parameters
        ----------
        device : Device
        document : str
            The text of the campaign.
        digest : str
            Its id as the app ships it: any other document is refused.
        max_epsilon : number
            The most that a person may lose, 1e-6 to 20.

        Raises
        ------
        CollectionError
            The document is malformed, another one, or beyond ``max_epsilon``.
        ParameterError
            ``digest`` or ``max_epsilon`` breaks its rule.
        LedgerError
            It could not be written down; the device has not joined.
        """
        if not isinstance(device, Device):
            raise ParameterError(f"device must be a Device, got {type(device).__name__}")
        if not isinstance(digest, str):
            raise ParameterError(f"digest must be a text, got {type(digest).__name__}")
        written_epsilon("max_epsilon", max_epsilon)  # elsewhere None means no limit
        campaign = Campaign.from_json(document, digest, max_epsilon)
        device._ledger.join(digest, campaign.to_json(), lambda: campaign.choose(entropy.system))

        def enrol(before: str | None) -> tuple[str, int]:
            if before is not None:
                return before, 0
            signing, agreement = entropy.system(KEY_BYTES), entropy.system(KEY_BYTES)
            return kept.written(kept.enrolled(signing, agreement)), 0

        device._ledger.advance(digest, enrol, campaign.micro_epsilon)
        return cls.open(device, digest)

    @classmethod
    def open(cls, device: Device, digest: str) -> "Participant":
        """Return the participant in a campaign that was joined.

        Raises
        ------
        CollectionError
            The device has not joined it, or did under an earlier version of the protocol.
        LedgerError
        """
        pinned, state = device._ledger.joined(digest), device._ledger.state(digest)
        if pinned is None or not pinned[1] or state is None:
            raise CollectionError(
                "the device has not joined this campaign: call join with its document, the digest "
                "that the app ships and a largest epsilon"
            )
        kept.read(state)  # or its keys are of no use
        return cls(device, Campaign.from_json(pinned[0], digest), pinned[1][0])

    @property
    def identity(self) -> bytes:
        """What to enrol, 64 bytes: keys of this device in this campaign, and nowhere else."""
        return bytes.fromhex(self._state()["public"])

    @property
    def due(self) -> Step | None:
        """Which of the server's messages comes next; None outside of a session.

        Read a position only where it is ``Step.MASK``.
        """
        state = self._state()
        due = state["step"] + 1
        running = bool(state["session"]) and not state["left"] and due <= Step.REVEAL
        return Step(due) if running else None

    @property
    def seat(self) -> tuple[bytes, int] | None:
        """The session that was begun last, and its number in it; None before the first."""
        state = self._state()
        return (bytes.fromhex(state["session"]), state["number"]) if state["session"] else None

    def seat_request(self, certificate: bytes) -> bytes:
        """Return what asks a server for a seat in this device's round, signed by its identity.

        Parameters
        ----------
        certificate : bytes, 132
            What the directory answered to :attr:`identity`.
        """
        private = bytes.fromhex(self._state()["signing"])
        signer = SigningKey(lambda _: private)
        return seat_request(signer, certificate, self.campaign.digest, self.number)

    def is_open(self) -> bool:
        """Tell whether by the device's clock its round is open."""
        return self.campaign.round_at(time.time()) == self.number

    def spent(self) -> int:
        """Return the micro-epsilons that this campaign has cost, under a claim that is distributed.

        What such a claim rests on is in :meth:`RoundDocument.claim`.
        """
        return self._ledger.spent(self.campaign.digest)

    def begin(self, document: str, session: bytes, number: int) -> bytes:
        """Enter a session of the round: return a fresh public key, signed.

        A session that was begun before and got no vector is given up for good.

        Parameters
        ----------
        document : str
            The text of the round document.
        session : bytes, 16
        number : int
            Which client of the session this is, in the directory of identities.

        Raises
        ------
        CollectionError
            The document is not one of the campaign, breaks its limits, or is not private as it
            claims.
        NotAskedError
            It is not this device's round, or not open by its clock.
        AlreadyGivenError
            The device has given its vector in this campaign.
        BudgetError
            The ledger has no room for it.
        ProtocolError
            A session that was left, or one under other terms than before, or one too many.
        """
        asked = RoundDocument.from_json(document, self.campaign)
        if asked.round != self.number:
            raise NotAskedError("this device takes part in another round of the campaign")
        if not isinstance(session, bytes) or len(session) != SESSION_BYTES:
            raise ParameterError(f"session must be {SESSION_BYTES} bytes, got {shown(session)}")
        terms = asked.terms(session)
        number = whole_number("number", number, 0, asked.clients - 1)
        self.check_open()
        here = {"session": session.hex(), "round": asked.digest, "number": number}

        def move(state: State, last: Client | None) -> Moved:
            if kept.is_begun(state, here):
                return state, 0, last
            identity = kept.identity_of(state)
            client = Client(terms, number, identity, {number: identity.public})
            answer = client.advertise().to_bytes()
            return kept.begun(state, here, answer, client.saved()), 0, client

        self._documents[asked.digest] = asked
        # Kept with the session: documents of rounds that cannot be begun would fill the disk.
        return self._moved(move, asked.micro_epsilon, (asked.digest, asked.to_json()))

    def share(self, message: bytes, identities: Identities) -> bytes:
        """Answer the list of the neighbours' keys: return shares of two secrets, sealed for them.

        Parameters
        ----------
        message : bytes
        identities : callable
            Takes the numbers of the neighbours, returns their identities, from a party that clients
            trust for it and the server does not control. It is called before the ledger is locked.

        Raises
        ------
        ProtocolError, NotAskedError, LedgerError
            As for every message; what ``identities`` raises passes through, and nothing happened.
        """
        last = self._last
        state = self._state() if last is None else last[1]
        known: Mapping[int, bytes] = {}
        if state["step"] == Step.ADVERTISE and not state["left"]:
            known = self._fetched(state, message, identities)

        def respond(client: Client, data: bytes, asked: RoundDocument) -> Message:
            return client.share(KeyList.from_bytes(data, client.terms))

        return self._answer(Step.SHARE, message, respond, known, state["session"])

    def mask(self, message: bytes, lat: float, lon: float) -> bytes:
        """Answer the neighbours' shares: return the vector of a position under noise and masks.

        The one message that spends: debit and answer are on the disk before this returns. The
        position is not kept, nor is the vector without its masks.

        Parameters
        ----------
        message : bytes
        lat, lon : float
            Degrees (y, x on a plane grid). Outside the square the nearest cell counts.

        Raises
        ------
        PositionError
            The position is not a finite latitude and longitude; nothing happened.
        BudgetError
            A cap would be exceeded; nothing happened.
        ProtocolError, NotAskedError, LedgerError
            As for every message.
        """
        row, column = self.campaign.grid.cell(lat, lon)

        def drawn(asked: RoundDocument) -> list[int]:
            own = asked.asked.vector(self.campaign.depth, row, column)
            return client_vector(own, asked.noise, 1 << asked.bits, entropy.system)

        # Seconds for long vectors: before the ledger is locked, as others wait for it.
        state = self._state()
        self._know_document(state)
        early = None
        if state["step"] == Step.SHARE and not state["left"]:
            self.check_open()
            early = drawn(self._running(state))

        def respond(client: Client, data: bytes, asked: RoundDocument) -> Message:
            shares = SharesIn.from_bytes(data, client.terms)
            noisy = drawn(asked) if early is None else early
            return client.mask(shares, np.array(noisy, dtype=np.int64))

        return self._answer(Step.MASK, message, respond, session=state["session"])

    def confirm(self, message: bytes) -> bytes:
        """Answer the list of survivors: return what confirms it to the neighbours."""

        def respond(client: Client, data: bytes, asked: RoundDocument) -> Message:
            return client.confirm(Survivors.from_bytes(data, client.terms))

        return self._answer(Step.CONFIRM, message, respond)

    def reveal(self, message: bytes) -> bytes:
        """Answer the neighbours' confirmations: return one share of each of them."""

        def respond(client: Client, data: bytes, asked: RoundDocument) -> Message:
            return client.reveal(Confirmations.from_bytes(data, client.terms))

        return self._answer(Step.REVEAL, message, respond)

    def resume(self) -> tuple[Step, bytes] | None:
        """Return the last answer with its round, to send it again after a restart; or None."""
        state = self._state()
        if state["left"] or state["step"] < 0 or not state["answer"]:
            return None
        return Step(state["step"]), kept.answer_of(state)

    def finish(self) -> None:
        """Forget what was kept to be sent again, once the server has the last answer."""

        def move(state: State, last: Client | None) -> Moved:
            if state["step"] != Step.REVEAL:
                raise ProtocolError("the session is not over: its last answer was not given")
            return {**state, "answer": "", "asked": ""}, 0, None

        self._moved(move)
        self._last = None

    def _answer(
        self,
        step: Step,
        data: bytes,
        respond: Respond,
        identities: Mapping[int, bytes] | None = None,
        session: str | None = None,
    ) -> bytes:
        """Answer one message, once; what breaks a rule ends the session.

        Identities are those of the neighbours in a session that is named besides.
        """
        if not isinstance(data, bytes):
            raise ParameterError(f"message must be bytes, got {type(data).__name__}")
        asked = sha256(data).hexdigest()
        if not self._documents:
            self._know_document(self._state())

        def move(state: State, last: Client | None) -> Moved:
            document = self._running(state, session)
            if state["step"] == step:
                if state["asked"] == asked:
                    return state, 0, last
                why = f"the server sent two messages in round {step.value}"
                return kept.gone(state, why), 0, None
            if state["step"] != step - 1:
                raise ProtocolError(f"this device does not answer round {step.value} now")
            if step in (Step.SHARE, Step.MASK):
                self.check_open()
            client = self._client(state, last, document, identities)
            try:
                answer = respond(client, data, document)
            except ProtocolError as error:
                return kept.gone(state, str(error)), 0, None
            now = {
                **state, "step": int(step), "asked": asked, "answer": as_text(answer.to_bytes()),
                "client": client.saved(),
            }  # fmt: skip
            if step is not Step.MASK:
                return now, 0, client
            # No other session may follow: with the key goes what could open this one later.
            return {**now, "spent": 1, "agreement": ""}, document.micro_epsilon, client

        return self._moved(move)

    def _moved(
        self,
        move: Callable[[State, Client | None], Moved],
        room: int = 0,
        document: tuple[str, str] | None = None,
    ) -> bytes:
        """Move the state on by one commit; return the answer that goes with it.

        ``move`` is given the client of the last answer where it is here and the ledger is as it
        left it. It is out of reach meanwhile: should the ledger not take the step, it has gone on
        alone, and another is made of what is kept.
        """
        moved: list[tuple[str, State, Client | None]] = []

        def step(before: str | None) -> tuple[str, int]:
            last, self._last = self._last, None  # under the ledger's lock, so by one thread
            if before is None or last is None or last[0] != before:
                last = (str(before), kept.read(before), None)
            state, spent, client = move(last[1], last[2])
            moved.append(last if state is last[1] else (kept.written(state), state, client))
            return moved[0][0], spent

        limit = self.campaign.micro_epsilon
        self._ledger.advance(self.campaign.digest, step, limit, room, document)
        (self._last,) = moved
        state = self._last[1]
        if state["left"]:
            raise ProtocolError(state["left"])
        return kept.answer_of(state)

    def _running(self, state: State, session: str | None = None) -> RoundDocument:
        """Return the round of the session that a device is in, or refuse where it is in none.

        Or in another than the one that is named: that may be looked up before the ledger is locked.
        """
        if state["left"] or not state["session"]:
            raise ProtocolError(state["left"] or "no session was begun")
        if session not in (None, state["session"]):
            raise ProtocolError("another process began another session: ask for its keys again")
        if state["round"] not in self._documents:
            raise ProtocolError("another process began another round: open the participant anew")
        return self._documents[state["round"]]

    def _client(
        self,
        state: State,
        last: Client | None,
        document: RoundDocument,
        identities: Mapping[int, bytes] | None,
    ) -> Client:
        """Return the client of a session, as its last answer left it."""
        if identities is None and last is not None:
            return last
        terms = document.terms(bytes.fromhex(state["session"])) if last is None else last.terms
        number, saved = state["number"], state["client"]
        if identities is None:
            return Client.restored(terms, number, saved)
        own = kept.identity_of(state)
        directory = {**identities, number: own.public}
        return Client.restored(terms, number, saved, own, directory)

    def _fetched(self, state: State, message: bytes, identities: Identities) -> Mapping[int, bytes]:
        """Return the identities of those whose keys a message lists, but for one's own."""
        self._know_document(state)
        terms = self._documents[state["round"]].terms(bytes.fromhex(state["session"]))
        try:
            keys = KeyList.from_bytes(message, terms).keys
        except ProtocolError:
            return {}  # the message is refused in its turn
        if len(keys) > terms.degree + 1:
            return {}
        numbers = sorted({owner for owner, _ in keys} - {state["number"]})
        found = identities(numbers)
        if not isinstance(found, Mapping):
            raise ParameterError(f"identities must return a mapping, got {type(found).__name__}")
        for number, key in found.items():
            if not isinstance(key, bytes) or len(key) != IDENTITY_BYTES:
                raise ParameterError(f"identities must be {IDENTITY_BYTES} bytes, got {shown(key)}")
            if number not in numbers:
                raise ParameterError("identities must return those of the numbers it is asked for")
        return found

    def _know_document(self, state: State) -> None:
        """Read the document of a session's round after a restart; not to be called in a move."""
        self._documents.update(self._kept_document(state["round"]))

    def _kept_document(self, digest: str) -> dict[str, RoundDocument]:
        """Return a round document by its digest, unless it is known; not to be called in a move."""
        found = self._ledger.joined(digest) if digest and digest not in self._documents else None
        if found is None:
            return {}
        return {digest: RoundDocument.from_json(found[0], self.campaign, digest)}

    def _state(self) -> State:
        return kept.read(self._ledger.state(self.campaign.digest))

    def check_open(self) -> None:
        """Refuse where :meth:`is_open` is false, so that no position is read in vain.

        Raises
        ------
        NotAskedError
            The round of this device is not open by its clock.
        """
        if not self.is_open():
            raise NotAskedError(
                "the round of this device is not open by its clock: ask is_open before a position "
                "is read; nothing was drawn"
            )
