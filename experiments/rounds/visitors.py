"""Devices that visit a server of rounds over HTTP."""

import http.client
import json
import time
from collections.abc import Callable
from contextlib import suppress

from client_sdk.rounds import Ask, Participant, Told, visit

TIMEOUT_S = 60.0
MOST_WAIT_S = 0.5  # rounds here last seconds
SUMMED, FAILED = "whose session came to a sum", "who failed"


class Address:
    """Where a server listens, with one connection that is opened again when it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: http.client.HTTPConnection | None = None
        self.last = Told(0)

    def told(self, ask: Ask) -> Told:
        """Make a request; what fails on the way is to be made again."""
        self.last = self._told(ask)
        return self.last

    def _told(self, ask: Ask) -> Told:
        time.sleep(min(ask.wait_s, MOST_WAIT_S))
        headers = {"Authorization": f"Bearer {ask.token}"} if ask.token else {}
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(
                    "127.0.0.1", self._port, timeout=TIMEOUT_S
                )
            self._connection.request(ask.method, ask.path, ask.body, headers)
            response = self._connection.getresponse()
            wait_s = float(response.headers.get("Retry-After", "0"))
            return Told(response.status, response.read(), wait_s)
        except (OSError, http.client.HTTPException):
            self.close()
            return Told(503)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
        self._connection = None


def take_part(
    participant: Participant, where: tuple[float, float], directory: bytes, port: int,
    is_gone: Callable[[Ask], bool],
) -> str:  # fmt: skip
    """Visit until the session is over; return how it ended, in the server's words if without a sum.

    Parameters
    ----------
    participant : Participant
    where : latitude and longitude
    directory : bytes, 32
    port : int
    is_gone : callable
        Whether the device fails before a request.
    """
    address = Address(port)
    visiting = visit(participant, lambda: where, directory)
    try:
        ask = next(visiting)
        while not is_gone(ask):
            ask = visiting.send(address.told(ask))
        return FAILED
    except StopIteration as end:
        return SUMMED if end.value else str(json.loads(address.last.body)["detail"])
    finally:
        address.close()
