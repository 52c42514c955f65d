"""Lets schemathesis send lines of JSON: as text, like every body that is not JSON."""

import schemathesis

schemathesis.serializer.alias(["application/x-ndjson", "application/jsonl"], "text/plain")
