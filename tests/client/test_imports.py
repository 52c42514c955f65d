"""The client is embedded in other people's apps: small, standard library only, pinned names."""

import doctest
import importlib
import json
import pkgutil
import subprocess
import sys
from typing import Any

import pytest

import client_sdk
from client_sdk import rounds

PUBLIC = [
    "AlreadyGivenError", "Answer", "BudgetError", "ClientError", "Collection", "CollectionError",
    "DesignWarning", "Device", "Grid", "Ledger", "LedgerBusyError", "LedgerError",
    "LedgerUnavailableError",
    "NotAskedError", "ParameterError", "PositionError", "Randomizer", "Report", "ResponseTable",
    "Series", "Uploader",
    "answer_of_http", "https_sender", "response_table",
]  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names of the modules that a statement loads in a fresh interpreter."""
    script = (
        "import sys, json; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(out.stdout)
    return set(names)


def test_import_loads_the_standard_library_only() -> None:
    names = loaded_by("import client_sdk")
    assert "client_sdk" in names
    assert names - {"client_sdk"} <= sys.stdlib_module_names


def test_a_whole_report_needs_the_standard_library_only() -> None:
    names = loaded_by(
        "import client_sdk\n"
        "grid = client_sdk.Grid.from_center(52.52, 13.405, 20_000, 5)\n"
        "text = client_sdk.Collection.create('x', grid, 2).to_json()\n"
        "collection = client_sdk.Collection.from_json(text)\n"
        "client_sdk.Randomizer(collection).report(52.5, 13.4).to_json()\n"
    )
    assert names - {"client_sdk"} <= sys.stdlib_module_names


def test_the_bridge_to_ports_needs_the_standard_library_only() -> None:
    names = loaded_by("import client_sdk.conformance.__main__")
    assert names - {"client_sdk"} <= sys.stdlib_module_names


def test_kernels_testing_and_conformance_are_loaded_only_when_asked_for() -> None:
    script = (
        "import sys, client_sdk\n"
        "assert 'client_sdk.kernels' not in sys.modules\n"
        "assert 'client_sdk.testing' not in sys.modules\n"
        "assert 'client_sdk.conformance' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_public_names_are_pinned() -> None:
    assert client_sdk.__all__ == PUBLIC
    assert all(hasattr(client_sdk, name) for name in PUBLIC)
    assert client_sdk.__version__ == "0.1.0"


def test_public_names_of_rounds_are_pinned() -> None:
    assert rounds.__all__ == [
        "Ask", "Asked", "Campaign", "Client", "Identity", "Neighbours", "NoiseShare",
        "Participant", "ProtocolError", "RoundDocument", "SigningKey", "Step", "Terms", "Told",
        "checked_modulus", "choose_neighbours", "client_vector", "visit",
    ]  # fmt: skip
    assert all(hasattr(rounds, name) for name in rounds.__all__)


def test_rounds_name_their_extra_where_it_is_missing() -> None:
    names = loaded_by("import client_sdk.rounds as r; r.NoiseShare, r.Terms, r.RoundDocument")
    assert names - {"client_sdk"} <= sys.stdlib_module_names
    for package in ("cryptography", "numpy"):
        script = (
            f"import sys; sys.modules['{package}'] = None\n"
            "import client_sdk.rounds\n"
            "try:\n    client_sdk.rounds.Participant\n"
            "except client_sdk.ParameterError as error:\n    print(error)"
        )
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        told = f"rounds need the package {package}: install ldpspatial-client[rounds]\n"
        assert run.stdout == told


def test_examples_in_docstrings_run() -> None:
    attempted = 0
    for module in pkgutil.walk_packages(client_sdk.__path__, "client_sdk."):
        results = doctest.testmod(
            importlib.import_module(module.name), optionflags=doctest.ELLIPSIS
        )
        assert results.failed == 0
        attempted += results.attempted
    assert attempted > 10


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (client_sdk.ParameterError, ValueError),
        (client_sdk.PositionError, ValueError),
        (client_sdk.CollectionError, ValueError),
        (client_sdk.BudgetError, RuntimeError),
        (client_sdk.AlreadyGivenError, RuntimeError),
        (client_sdk.NotAskedError, RuntimeError),
        (client_sdk.LedgerError, OSError),
    ],
)
def test_each_error_is_a_client_error_and_a_builtin(error: Any, builtin: Any) -> None:
    assert issubclass(error, client_sdk.ClientError)
    assert issubclass(error, builtin)
