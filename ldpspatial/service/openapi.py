"""The interface of the service as an OpenAPI document, at /openapi.json."""

from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ldpspatial import __version__
from ldpspatial.service.operator_api import MAP_FILES, MAP_OPTIONS
from ldpspatial.service.problems import MEDIA_TYPE, TYPE

Json = dict[str, Any]

DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$", "minLength": 64, "maxLength": 64}
NUMBER = {"type": "integer", "minimum": 0}
POSITIVE = {"type": "integer", "minimum": 1}
WRITTEN_NUMBER = {"type": "string", "pattern": "^[0-9]{1,10}$", "minLength": 1, "maxLength": 10}
SESSION = {"type": "string", "pattern": "^[0-9a-f]{32}$", "minLength": 32, "maxLength": 32}
OCTETS = "application/octet-stream"
BYTES = {"requestBody": {"required": True, "content": {OCTETS: {}}}}
OF_BODIES = 400, 408, 413, 422  # what may be wrong with bytes that are sent in a round
NUMBER_OR_NONE = {"type": ["integer", "null"], "minimum": 0}


async def describe(request: Request, *, rounds: bool) -> Response:
    """Return the document."""
    return Response(msgspec.json.encode(document(rounds)), media_type="application/json")


@cache
def document(rounds: bool = False) -> Json:
    """Return the document as an object, with the requests of rounds where a store has them."""
    seat = {"type": "http", "scheme": "bearer", "description": "The token of a seat."}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ldpspatial",
            "version": __version__,
            "description": "Collects randomised reports of positions, and shows what they tell.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            **_for_devices(),
            **(_for_rounds() if rounds else {}),
            **_for_operators(),
            **_for_watching(),
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                **({"seat": seat} if rounds else {}),
            },
            "schemas": {**_schemas(), **({"Seat": _seat()} if rounds else {})},
        },
    }


def _for_devices() -> Json:
    report = {"$ref": "#/components/schemas/Report"}
    lines = {"schema": {"type": "string", "description": "Reports, one a line."}}
    return {
        "/reports": {
            "post": {
                "operationId": "sendReports",
                "summary": "Send reports: devices one, relays many as lines.",
                "description": "204: all are stored durably. gzip is taken as Content-Encoding.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": report},
                        "application/x-ndjson": lines,
                        "application/jsonl": lines,
                    },
                },
                "responses": {
                    "200": _answer("Some lines were refused.", "Stored"),
                    "204": {"description": "All are stored."},
                    **_problems(400, 408, 410, 413, 415, 422, 429, 503),
                },
            },
            "options": {
                "operationId": "mayPagesSend",
                "summary": "Tell a browser that any page may send.",
                "responses": {"204": {"description": "Any page may."}},
            },
        },
        "/collections/{digest}": _document("getCollection", "collection"),
        "/series/{digest}": _document("getSeries", "series"),
    }


def _for_rounds() -> Json:
    campaign = {**_in_path("campaign"), "schema": DIGEST}
    number = {**_in_path("number"), "schema": WRITTEN_NUMBER}
    session = {**_in_path("session"), "schema": SESSION}
    seat = {**_in_path("seat"), "schema": WRITTEN_NUMBER}
    step = {**_in_path("step"), "schema": {"type": "string", "enum": list("01234")}}
    text = {"description": "The canonical text.", "content": {"application/json": {}}}
    later = {"202": {"description": "Not yet: ask again."}}
    message = _for_seat(
        "sendMessage",
        "Send the message of a step.",
        {"204": {"description": "It is stored durably."}, **_problems(*OF_BODIES)},
        BYTES,
    )
    answer = _for_seat(
        "getAnswer",
        "Return what comes of a step.",
        {
            "200": _bytes("The message to this seat."),
            **later,
            "204": {"description": "The session came to its sum."},
        },
    )
    return {
        "/directory/{campaign}": {
            "post": _of_round(
                "enrol",
                "Enrol an identity.",
                {
                    "200": _bytes("Its certificate: the same whoever asks again."),
                    **_problems(403, *OF_BODIES),
                },
                BYTES,
                campaign,
            )
        },
        "/rounds/{campaign}": {
            "get": _of_round(
                "getCampaign", "Return the document of a campaign.", {"200": text}, {}, campaign
            )
        },
        "/rounds/{campaign}/{number}": {
            "get": _of_round(
                "getRound",
                "Return the document of a round, once it is open.",
                {"200": text, **_problems(410)},
                {},
                *(campaign, number),
            )
        },
        "/rounds/{campaign}/{number}/seat": {
            "post": _of_round(
                "askForSeat",
                "Ask for a seat with a certificate and a signature.",
                {"200": _answer("The seat.", "Seat"), **later, **_problems(409, 410, *OF_BODIES)},
                BYTES,
                *(campaign, number),
            )
        },
        "/rounds/sessions/{session}/identities/{seat}": {
            "post": {
                **_for_seat(
                    "getIdentities",
                    "Return the certificates of neighbours by their numbers, 4 bytes each.",
                    {"200": _bytes("132 bytes each."), **_problems(*OF_BODIES)},
                    BYTES,
                ),
                "parameters": [session, seat],
            }
        },
        "/rounds/sessions/{session}/{step}/{seat}": {
            "post": {**message, "parameters": [session, step, seat]},
            "get": {**answer, "parameters": [session, step, seat]},
        },
    }


def _for_operators() -> Json:
    one = "/operator/collections/{digest}"
    told = "Collection"
    return {
        "/operator/collections": {
            "get": _guarded("listCollections", "List all collections.", _list_of("Collection")),
            "post": _guarded(
                "addCollection",
                "Open a collection for reports.",
                {"201": _answer("It is open.", told), **_problems(413, 422)},
                _body("NewCollection"),
            ),
        },
        "/operator/series": {
            "get": _guarded("listSeries", "List all series.", _list_of("Series")),
            "post": _guarded(
                "addSeries",
                "Add a series, whose windows the service opens and closes by its clock.",
                {"201": _answer("It was added.", "Series"), **_problems(413, 422)},
                _body("NewSeries"),
            ),
        },
        "/operator/refused": {
            "get": _guarded(
                "getRefused",
                "Tell how many reports were refused that name no collection, by reason.",
                {"200": _answer("Their numbers.", "Refused")},
            ),
        },
        one: _of_one("get", "getCollectionState", "Tell how far a collection is.", told),
        f"{one}/close": _of_one(
            "post", "closeCollection", "Take no more reports, and count.", told, 422
        ),
        f"{one}/release": _of_one(
            "post",
            "releaseCollection",
            "Delete the reports of a closed collection, keep its counts.",
            told,
            422,
        ),
        f"{one}/drop": _of_one(
            "post", "dropCollection", "Delete all that a closed collection holds.", told, 422
        ),
        f"{one}/counts": _of_one(
            "get", "getCounts", "Return the counts of a released collection.", "Counts", 422
        ),
        f"{one}/reports.parquet": _file(
            "getReports",
            "Return the different reports of a closed collection.",
            {"application/vnd.apache.parquet": {}},
        ),
        f"{one}/map": _file(
            "getMap",
            "Return the summary of the map of a released collection.",
            {"application/json": {"schema": {"type": "object"}}},
            *_map_options(),
        ),
        f"{one}/map/{{file}}": _file(
            "getMapFile",
            "Return a file of the map of a released collection.",
            {kind.partition(";")[0]: {} for kind in MAP_FILES.values()},
            {**_in_path("file"), "schema": {"type": "string", "enum": list(MAP_FILES)}},
            *_map_options(),
        ),
    }


def _for_watching() -> Json:
    text = {"description": "Text format of Prometheus.", "content": {"text/plain": {}}}
    return {
        "/health": {
            "get": {
                "operationId": "getHealth",
                "summary": "Tell whether the store works.",
                "responses": {"200": _answer("It works.", "Health"), **_problems(503)},
            }
        },
        "/metrics": {
            "get": _guarded("getMetrics", "Numbers for Prometheus.", {"200": text}),
        },
    }


def _document(name: str, what: str) -> Json:
    return {
        "get": {
            "operationId": name,
            "summary": f"Return the document of a {what}: the same bytes for all, for ever.",
            "parameters": [_digest()],
            "responses": {
                "200": {
                    "description": "The canonical text.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                **_problems(404, 503),
            },
        }
    }


def _of_round(name: str, summary: str, responses: Json, more: Json, *parameters: Json) -> Json:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        "responses": {**responses, **_problems(404, 429, 503)},
        **more,
    }


def _for_seat(name: str, summary: str, responses: Json, more: Json | None = None) -> Json:
    told = {**responses, **_problems(401, 410)}
    return {**_of_round(name, summary, told, more or {}), "security": [{"seat": []}]}


def _bytes(description: str) -> Json:
    return {"description": description, "content": {OCTETS: {}}}


def _guarded(name: str, summary: str, responses: Json, more: Json | None = None) -> Json:
    return {
        "operationId": name,
        "summary": summary,
        "security": [{"token": []}],
        "responses": {**responses, **_problems(401, 503)},
        **(more or {}),
    }


def _of_one(method: str, name: str, summary: str, schema: str, *refusals: int) -> Json:
    responses = {"200": _answer("Its numbers.", schema), **_problems(404, *refusals)}
    return {method: _guarded(name, summary, responses, {"parameters": [_digest()]})}


def _file(name: str, summary: str, content: Json, *parameters: Json) -> Json:
    responses = {
        "200": {"description": "The file.", "content": content},
        **_problems(404, 422, 500),
    }
    if name != "getReports":
        responses["202"] = _answer("It is being made: ask again.", "Making")
    return {
        "get": _guarded(name, summary, responses, {"parameters": [_digest(), *parameters]}),
    }


def _map_options() -> list[Json]:
    names = {
        option: {"enum": list(names)} if option != "rule" else {"examples": list(names)}
        for option, names in MAP_OPTIONS.items()
    }
    texts = {
        "rule": "The estimator: a name as of ldpspatial estimate --estimator.",
        "smoothing": "Smoothed EM.",
        "intervals": "How 95 % intervals are made.",
    }
    return [
        {
            "name": option,
            "in": "query",
            "description": text,
            "schema": {"type": "string", **names[option]},
        }
        for option, text in texts.items()
    ]


def _digest() -> Json:
    return {**_in_path("digest"), "schema": DIGEST}


def _in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True}


def _body(schema: str) -> Json:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"requestBody": {"required": True, "content": content}}


def _answer(description: str, schema: str) -> Json:
    found = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": description, "content": {"application/json": {"schema": found}}}


def _list_of(schema: str) -> Json:
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}
    return {"200": {"description": "All.", "content": {"application/json": {"schema": items}}}}


def _problems(*statuses: int) -> Json:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        str(status): {"description": "A problem document.", "content": {MEDIA_TYPE: problem}}
        for status in statuses
    }


def _object(required: Json, optional: Json | None = None) -> Json:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def _seat() -> Json:
    token = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
    return _object({"session": SESSION, "number": NUMBER, "token": token})


def _schemas() -> Json:
    cell = {"type": "integer", "minimum": -(1 << 20), "maximum": 1 << 20}
    text = {"type": "string"}
    refused = _object({"line": POSITIVE, "reason": text})
    problem = {
        "type": "object",
        "required": ["type", "status", "detail"],
        "properties": {
            "type": {"type": "string", "examples": ["about:blank", f"{TYPE}closed"]},
            "status": {"type": "integer"},
            "detail": text,
            "lines": {"type": "array", "items": refused},
        },
    }
    refusals = {"type": "object", "additionalProperties": NUMBER}
    new = {"document": text, "minimum": {**POSITIVE, "maximum": 10**12}}
    collection = {
        **{"digest": DIGEST, "name": text},
        "state": {"type": "string", "enum": ["open", "closed", "released", "dropped"]},
        "minimum": POSITIVE,
        "received": NUMBER,
        "refused": refusals,
        **dict.fromkeys(("counted", "repeated", "conflicting"), NUMBER_OR_NONE),
    }
    series = {
        **{"digest": DIGEST, "name": text, "minimum": POSITIVE, "leeway_s": NUMBER},
        **dict.fromkeys(("windows", "answers", "window_seconds"), POSITIVE),
        "first_start": NUMBER,
    }
    return {
        "Report": _object({
            "schema": {"const": "ldpspatial/report/1"},
            "collection": DIGEST,
            "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            **{"row": cell, "col": cell},
        }),
        "Stored": _object({"stored": NUMBER, "refused": {"type": "array", "items": refused}}),
        "Problem": problem,
        "Health": _object({"status": {"const": "ok"}}),
        "Making": _object({"state": {"const": "being made"}}),
        "NewCollection": _object(new),
        "NewSeries": _object(new, {"leeway_s": NUMBER}),
        "Collection": _object(collection),
        "Series": _object(series),
        "Refused": refusals,
        "Counts": _object({
            **dict.fromkeys(("received", "repeated", "conflicting"), NUMBER),
            "counts": {"type": "array", "items": {"type": "array", "items": NUMBER}},
        }),
    }  # fmt: skip
