"""What each device of a fleet will live through, by a seed, for devices in any language.

The seed decides the plans. Ids and cells come from each device's own entropy, as always, and how
requests interleave is of the run's own.
"""

import json
import random
from pathlib import Path
from typing import Any

from client_sdk import Collection, Grid, Series

GRID = Grid.plane(0, 0, 100, 5)
EPSILON = 2
START = 1_800_000_000
DAY = 86_400
LEEWAY_S = 3600
DAYS = 4

LASTING = Collection.create("open to the end", GRID, EPSILON, max_reports=20)
CLOSING = Collection.create("closed by its operator", GRID, EPSILON, max_reports=20)
RELEASED = Collection.create("closed and released", GRID, EPSILON, max_reports=20)
UNKNOWN = Collection.create("of another service", GRID, EPSILON, max_reports=20)
DAILY = Series.create(
    "closed by the clock", GRID, EPSILON, first_start=START, window_seconds=DAY, windows=DAYS,
    answers=DAYS,
)  # fmt: skip

WHATS: tuple[Collection | Series, ...] = (LASTING, CLOSING, RELEASED, UNKNOWN, DAILY)
OFTEN = (40, 20, 10, 3, 27)  # percent of the readings
OUTBOX = 3
MANY = 8  # readings before the first pass, of a device with so small an outbox
WRONG_S = (0, 0, 0, 0, 30, -600, 7200, -9000, 3 * DAY, -40 * DAY, 1200 * DAY, -2000 * DAY)
JUMPS_S = (0, 0, 0, 0, 0, 0, 3600, -3600, DAY, -DAY, 900 * DAY, -900 * DAY)
PASSES = 8  # of a device in the storm; what waits then is sent when it is calm

Plan = dict[str, Any]


def plans(n_devices: int, seed: int) -> list[Plan]:
    """Return what devices do; the first of them in the first window of the series."""
    dice = random.Random(seed)  # noqa: S311
    return [_plan(k, n_devices, dice) for k in range(n_devices)]


def _plan(number: int, n_devices: int, dice: random.Random) -> Plan:
    plan: Plan = {
        "number": number,
        "outbox": 1000,
        "spoils": False,
        # By its own clock, which may be wrong; and by how much that is turned after each pass.
        "time": START + (number + dice.random()) / n_devices * DAYS * DAY + dice.choice(WRONG_S),
        "jumps": [dice.choice(JUMPS_S) for _ in range(PASSES)],
        # Whether it is another process, or page, that makes a pass.
        "restarts": [dice.random() < 0.25 for _ in range(PASSES)],
        # After how many first passes of other devices its next pass comes.
        "delays": [dice.randrange(1, 2 + n_devices // 5) for _ in range(PASSES)],
    }
    kind = dice.random()
    if kind < 0.02:
        plan["outbox"] = OUTBOX
        plan["readings"] = [_reading(LASTING, k, dice) for k in range(MANY)]
    elif kind < 0.03:  # an app whose own HTTP library writes the body anew
        plan["spoils"] = True
        plan["readings"] = [_reading(LASTING, 0, dice)]
    else:
        whats = dict.fromkeys(dice.choices(WHATS, OFTEN, k=dice.choice((1, 1, 2))))
        plan["readings"] = [_reading(what, k, dice) for k, what in enumerate(whats)]
    return plan


def _reading(what: Collection | Series, number: int, dice: random.Random) -> Plan:
    """Return a position to report, its name, and whether the app asks for it twice."""
    return {
        "what": what.digest,
        "event": None if isinstance(what, Series) else f"visit {number}",
        "lat": dice.uniform(0, 100),
        "lon": dice.uniform(0, 100),
        "is_asked_again": dice.random() < 0.2,
    }


def write(path: Path, devices: list[Plan]) -> None:
    """Write plans, with the documents that they name."""
    documents = {what.digest: what.to_json() for what in WHATS}
    path.write_text(json.dumps({"documents": documents, "devices": devices}), encoding="utf-8")


def sent_at_most(devices: list[Plan]) -> int:
    """Return how many reports devices send, if the clock of each finds its window open."""
    return sum(min(len(plan["readings"]), plan["outbox"]) for plan in devices)


def by_digest() -> dict[str, Collection]:
    """Return all collections that reports can be of."""
    single = [what for what in WHATS if isinstance(what, Collection)]
    windows = [DAILY.collection(k) for k in range(1, DAYS + 1)]
    return {what.digest: what for what in [*single, *windows]}
