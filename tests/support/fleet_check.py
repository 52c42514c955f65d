"""What must hold after a fleet's storm: between devices, network and store nothing is at odds."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from client_sdk import Report
from ldpspatial.collecting.records import OutputDomain
from ldpspatial.service.closing import Counted, close_collection, stored_reports
from ldpspatial.service.store import CLOSED, OPEN, open_store
from tests.support.fleet_plans import EPSILON, by_digest
from tests.support.fleet_witness import SPOILT, STORED, Exchange, Life, Witness, name_of, report_of

MICRO = 1_000_000 * EPSILON
DELIVERED, DROPPED, WAITING = "delivered", "dropped", "waiting"
REASONS = ("closed", "foreign", "malformed", "conflict")

Found = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """What a store holds of a collection in the end.

    Attributes
    ----------
    number : int
        By which refusals are counted.
    state : str
    counted : Counted
    stored : dict of bytes to int, or None
        Ids, and flat indices of cells, of all different reports; None once they are deleted.
    """

    number: int
    state: str
    counted: Counted
    stored: dict[bytes, int] | None


@dataclass(frozen=True)
class Books:
    """What a store holds in the end: collections by digest, and refusals by number and reason."""

    kept: dict[str, Kept]
    refused: dict[tuple[int, str], int]


async def books_of(location: str) -> Books:
    """Read a store whose collections are all closed, or released."""
    store = await open_store(location)
    kept = {}
    for held in await store.collections():
        assert held.state != OPEN, held
        found = await close_collection(store, held.digest)  # that may have been cut short
        stored: dict[bytes, int] | None = {} if held.state == CLOSED else None
        if stored is not None and found.received:  # what counts nothing gives no reports
            stored = {
                row["id"].tobytes(): int(row["place"])
                async for records in stored_reports(store, held.digest)
                for row in records
            }
        kept[held.digest] = Kept(held.number, held.state, found, stored)
    books = Books(kept, await store.refused())
    await store.close()
    return books


def complaints(devices: list[Found], witness: Witness, books: Books) -> list[str]:
    """Return what is at odds, in words; nothing where all is well."""
    drawn = {
        Report.from_json(report["body"]).id: Report.from_json(report["body"])
        for device in devices
        for report in device["reports"]
    }
    return [
        *_of_devices(devices),
        *_of_beliefs(devices, witness),
        *_of_bodies(devices, witness),
        *_of_reasons(witness),
        *_of_refusals(witness, books),
        *_of_counts(drawn, witness, books),
    ]


def _of_devices(devices: list[Found]) -> Iterator[str]:
    """Each device's account: what it drew is spent, and each report has one end."""
    ids = [Report.from_json(each["body"]).id for one in devices for each in one["reports"]]
    if len(set(ids)) < len(ids):
        yield "two reports have one id"
    for device in devices:
        who = f"device {device['number']}"
        fates = Counter(report["fate"] for report in device["reports"])
        told = Counter({fate: n for fate, n in device["told"].items() if n})
        if fates[WAITING]:
            yield f"{who}: {fates[WAITING]} reports still wait"
        if fates - Counter({WAITING: fates[WAITING]}) != told:
            yield f"{who}: the passes told of {dict(told)}, the reports ended as {dict(fates)}"
        if device["spent"] != MICRO * len(device["reports"]):
            yield f"{who}: {len(device['reports'])} reports, {device['spent']} spent"
        discarded = len(device["reports"]) - fates[DELIVERED] - fates[WAITING]
        if device["discarded"] != discarded:
            yield f"{who}: discarded {device['discarded']} in place of {discarded}"
        if device["redrawn"]:
            yield f"{who}: a reading was drawn for twice"


def _of_beliefs(devices: list[Found], witness: Witness) -> Iterator[str]:
    """What a device believes of a report, the server has said, and the device could hear it."""
    for device in devices:
        for report in device["reports"]:
            name = Report.from_json(report["body"]).id
            if device["spoils"]:
                name = SPOILT + name
            fate = report["fate"]
            heard = witness.heard.get(name, set())
            said = STORED if fate == DELIVERED else fate
            if fate in (DROPPED, WAITING):
                is_founded = not heard & {STORED, *REASONS}
            else:
                is_founded = said in heard
            if not is_founded:
                yield f"report {name}: believed {fate}, but {witness.story(name)}"


def _of_bodies(devices: list[Found], witness: Witness) -> Iterator[str]:
    """One report, one text, sent again and again; and nothing that was never drawn."""
    bodies = {}
    for device in devices:
        for report in device["reports"]:
            name = Report.from_json(report["body"]).id
            bodies[SPOILT + name if device["spoils"] else name] = report["body"].encode()
    for name, sent in witness.sent.items():
        if name not in bodies:
            yield f"report {name} was sent and never drawn"
        elif len(sent) != 1 or (sent != {bodies[name]} and not name.startswith(SPOILT)):
            yield f"report {name} was sent as {len(sent)} texts, or as another one than was drawn"


def _of_reasons(witness: Witness) -> Iterator[str]:
    """Each answer of the server was the right one at that time."""
    for each in witness.exchanges:
        report = report_of(each.body)
        if report is None:
            is_right = each.verdict == "malformed"
        else:
            is_right = _is_right(each, witness.lives.get(report.collection, Life()))
        if not is_right:
            name = name_of(each.body)
            yield f"report {name}: {each.verdict} is the wrong answer; {witness.story(name)}"


def _is_right(each: Exchange, life: Life) -> bool:
    """Tell whether a verdict fits the collection's life; its changes take some time."""
    if each.verdict == STORED:
        could_be_open = life.opening is not None and each.ended > life.opening
        return could_be_open and (life.closed is None or each.began < life.closed)
    if each.verdict == "closed":
        return life.closing is not None and each.ended > life.closing
    # To wait or for good: how soon the window opens by the clock of the server decides.
    if each.verdict in ("foreign", "503"):
        return life.opened is None or each.began < life.opened
    return False


def _of_refusals(witness: Witness, books: Books) -> Iterator[str]:
    """The store has counted every refusal, by collection and reason."""
    expected: Counter[tuple[int, str]] = Counter()
    for each in witness.exchanges:
        if each.verdict in REASONS:
            report = report_of(each.body)
            kept = None if report is None else books.kept.get(report.collection)
            # One that was refused before its window was opened has no number yet.
            is_known = kept is not None and each.verdict != "foreign"
            expected[kept.number if kept and is_known else 0, each.verdict] += 1
    if expected != books.refused:
        yield f"refusals: {books.refused} in the store, {dict(expected)} on the wire"


def _of_counts(drawn: dict[str, Report], witness: Witness, books: Books) -> Iterator[str]:
    """Every report that was acknowledged to anybody counts once, and no other does."""
    acknowledged: dict[str, Counter[str]] = {digest: Counter() for digest in books.kept}
    for each in witness.exchanges:
        report = report_of(each.body)
        if each.verdict == STORED and report is not None:
            acknowledged.setdefault(report.collection, Counter())[report.id] += 1
    for digest, names in acknowledged.items():
        collection = by_digest()[digest]
        if digest not in books.kept:
            yield f"{collection.name}: acknowledged, and the store has no such collection"
            continue
        kept = books.kept[digest]
        domain = OutputDomain(collection)
        b = collection.table.radius
        places = {
            bytes.fromhex(name): (drawn[name].row + b) * domain.side + drawn[name].col + b
            for name in names
            if name in drawn
        }
        if kept.stored is not None and kept.stored != places:
            lost = len(places.keys() - kept.stored.keys())
            invented = len(kept.stored.keys() - places.keys())
            yield f"{collection.name}: {lost} lost, {invented} invented, or in another cell"
        found = {k: int(n) for k, n in enumerate(kept.counted.counts.ravel()) if n}
        if found != Counter(places.values()):
            yield f"{collection.name}: counts {sum(found.values())} reports, {len(places)} arrived"
        got = kept.counted.received, kept.counted.repeated, kept.counted.conflicting
        if got != (names.total(), names.total() - len(names), 0):
            yield (
                f"{collection.name}: received, repeated, conflicting are {got}; "
                f"{names.total()} were acknowledged, of {len(names)} ids"
            )
