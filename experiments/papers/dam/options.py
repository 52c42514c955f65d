"""Options of several commands of this folder."""

import click

from experiments.setup import COUNT
from experiments.synthetic import USERS

users_option = click.option(
    "--users", default=USERS, show_default=True, type=COUNT, help="People of a synthetic map."
)
