"""Clients of a fleet that are broken on purpose: ways to send that do what no client may."""

import json
import secrets
from collections.abc import Callable

from client_sdk import Answer
from client_sdk.sending import Send


def drawing_anew(send: Send) -> Send:
    """Send another report where the first attempt failed."""
    tried: set[bytes] = set()

    def broken(body: bytes) -> Answer:
        text = body
        if body in tried:
            report = {**json.loads(body), "id": secrets.token_hex(16)}
            text = json.dumps(report, sort_keys=True, separators=(",", ":")).encode()
        tried.add(body)
        return send(text)

    return broken


def believing_anybody(send: Send) -> Send:
    """Take every failure for a delivery."""

    def broken(body: bytes) -> Answer:
        try:
            answer = send(body)
        except OSError:
            answer = Answer()
        return answer if answer.refusal else Answer(is_delivered=True)

    return broken


CLIENT_FAULTS: dict[str, Callable[[Send], Send]] = {
    "drawing anew": drawing_anew,
    "believing anybody": believing_anybody,
}
