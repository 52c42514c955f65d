"""The table of all releases and what they promise, in docs/releases.md."""

import click

from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.privacy.claims import NEIGHBOURS, PrivacyClaim
from ldpspatial.release.registry import releases

EPSILON = 1.0


def claims_table() -> str:
    """Return all releases with their claims at epsilon 1, as Markdown."""
    rows = []
    for name, release in releases().items():
        claim = release.claim(EPSILON)
        rows.append([f"`{name}`", claim.model, *_promise(claim), "; ".join(claim.conditions)])
    header = ["release", "trust model", "epsilon, delta", "per", "neighbours",
              "epsilon under replacement", "rests on"]  # fmt: skip
    return markdown(header, rows)


def _promise(claim: PrivacyClaim) -> list[str]:
    if claim.model == "none":
        return ["none", "", "", ""]
    replaced = claim.under_replacement()
    return [
        f"{claim.epsilon:g}, {claim.delta:.1g}",
        claim.unit,
        NEIGHBOURS[claim.neighbours],
        f"{replaced.epsilon:g}",
    ]


@click.command()
def claims() -> None:
    """Table of all releases with their claims, into docs/releases.md."""
    table = claims_table()
    click.echo(table)
    replace_block(DOCS / "releases.md", "claims", table)
