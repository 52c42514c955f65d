"""The bridge by which an implementation in another language is tested against this client.

``python -m client_sdk.conformance`` answers requests, one JSON object a line; an implementation
that answers the same lines in the same way agrees with it (docs/protocol.md, section 10). For
tests only: it draws from entropy that the request gives, and no other module imports it.
"""
