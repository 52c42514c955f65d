"""What a device keeps of a round in its ledger, between one message and the next."""

import json
from typing import Any

from client_sdk import canonical
from client_sdk.errors import AlreadyGivenError, CollectionError
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.primitives import Identity
from client_sdk.rounds.terms import PROTOCOL, Step
from client_sdk.rounds.wire import as_text, from_text

MAX_SESSIONS = 16  # that a device begins in one campaign; all but the last without a vector

State = dict[str, Any]

_NONE: State = {
    "protocol": PROTOCOL, "sessions": [], "session": "", "round": "", "number": 0, "step": -1,
    "asked": "", "answer": "", "spent": 0, "left": "", "client": {},
    "signing": "", "agreement": "", "public": "",
}  # fmt: skip
_KEYS = ("signing", "agreement", "public")
_EARLIER = "the session was begun under an earlier version of the protocol"


def enrolled(signing: bytes, agreement: bytes) -> State:
    """Return the state of a device that has drawn the private keys of its identity."""
    return {
        **_NONE, "signing": signing.hex(), "agreement": agreement.hex(),
        "public": Identity(signing, agreement).public.hex(),
    }  # fmt: skip


def begun(state: State, here: State, answer: bytes, client: State) -> State:
    """Return the state of a device that has begun a session, whatever was before."""
    keys = {name: state[name] for name in _KEYS}
    return {
        **_NONE, **here, **keys, "sessions": [*state["sessions"], here["session"]],
        "step": int(Step.ADVERTISE), "answer": as_text(answer), "client": client,
    }  # fmt: skip


def gone(state: State, why: str) -> State:
    """Return the state of a session that was left: nothing is answered any more."""
    return {**state, "left": why, "answer": "", "asked": "", "client": {}}


def answer_of(state: State) -> bytes:
    """Return the last answer."""
    return from_text(state["answer"])


def identity_of(state: State) -> Identity:
    """Return the long-term keys."""
    return Identity(bytes.fromhex(state["signing"]), bytes.fromhex(state["agreement"]))


def is_begun(state: State, here: State) -> bool:
    """Tell whether a session is the one that was just begun; refuse one that may not be begun.

    Raises
    ------
    AlreadyGivenError, ProtocolError
    """
    if all(state[field] == value for field, value in here.items()):
        if state["step"] != Step.ADVERTISE or state["left"]:
            raise ProtocolError("this session was begun before: go on with resume")
        return True
    if state["spent"]:
        raise AlreadyGivenError("this device has given its vector in this campaign")
    if here["session"] in state["sessions"]:
        raise ProtocolError("this session was begun before, under other terms, or left")
    if len(state["sessions"]) >= MAX_SESSIONS:
        raise ProtocolError(f"this device has begun {MAX_SESSIONS} sessions: no more")
    return False


def read(text: str | None) -> State:
    """Return what was kept; a session of an earlier version of the protocol has been left.

    Raises
    ------
    CollectionError
        Nothing was, or by a version whose identities are of no use any more.
    """
    if text is None:
        raise CollectionError("the device has not joined this campaign")
    state: State = json.loads(text)
    if state.get("protocol") == PROTOCOL:
        return state
    if "public" not in state:
        raise CollectionError(
            "the device joined this campaign under an earlier version of the protocol, whose "
            "keys are of no use here: it can take part in another campaign"
        )
    stay = ("sessions", "session", "number", "spent", *_KEYS)  # its document says nothing here
    now = {**_NONE, **{name: state[name] for name in stay}}
    return gone(now, _EARLIER) if now["session"] else now


def written(state: State) -> str:
    """Return what is kept as a text."""
    return canonical.dumps(state)
