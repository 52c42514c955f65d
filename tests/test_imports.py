"""Which package may import which: stdlib <- client_sdk <- ldpspatial <- experiments."""

import ast
import subprocess
import sys
from pathlib import Path

import client_sdk
import ldpspatial

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "client_sdk" / "python" / "client_sdk"
SERVER = ROOT / "ldpspatial"

# A room of the server may import rooms of a lower level only (and itself).
LEVELS = {
    "errors": 0,
    "channel": 1,
    "dense_channels": 2,
    "local_privacy": 2,
    "still_device": 1,
    "disk_radius": 2,
    "regions": 2,
    "metrics": 1,
    "estimation": 2,
    "datasets": 2,
    "files": 3,
    "report_lines": 2,
    "counting": 3,
    "cell_maps": 2,
    "simulation": 4,
    "sampler_law": 4,
    "rehearsal": 4,
    "scale_bar": 3,
    "flow_arrows": 4,
    "transport_plot": 5,
    "plotting": 5,
    "designs": 5,
    "series_plan": 6,
    "planning": 7,
    "audit": 5,
    "users": 4,
    "discrete_laplace": 1,
    "shuffling": 2,
    "release": 5,
    "non_private": 6,
    "local": 6,
    "central": 6,
    "distributed": 6,
    "registry": 7,
    "recommendation": 7,
    "comparison": 8,
    "cli": 9,
}
# Readers of publishers' formats stand on the reader of tables, and nothing else in files does.
EXCEPTIONS = {("datasets", "files")}


def imports(path: Path) -> set[str]:
    """Every module that a file imports outside of TYPE_CHECKING blocks."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def top(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def room(path: Path) -> str:
    return path.relative_to(SERVER).parts[0].removesuffix(".py")


def server_files() -> list[Path]:
    return [p for p in SERVER.rglob("*.py") if p != SERVER / "__init__.py"]


def test_the_client_imports_only_itself_and_the_standard_library() -> None:
    allowed = {"client_sdk", *sys.stdlib_module_names}
    for path in CLIENT.rglob("*.py"):
        extra = {"numpy", "numba"} if path.name == "kernels.py" else set()
        outside = {top(m) for m in imports(path)} - allowed - extra
        assert not outside, f"{path.name} imports {outside}"


def test_only_the_kernels_of_the_client_know_numpy_and_nothing_imports_them() -> None:
    for path in CLIENT.rglob("*.py"):
        assert "client_sdk.kernels" not in imports(path), path.name


def test_nothing_but_tests_imports_the_testing_module_and_the_bridge_to_ports() -> None:
    for path in [*CLIENT.rglob("*.py"), *SERVER.rglob("*.py")]:
        if path.parent != CLIENT / "conformance":  # which is a test itself
            assert "client_sdk.testing" not in imports(path), path.name
            assert not any(m.startswith("client_sdk.conformance") for m in imports(path)), path.name


def test_the_server_never_imports_experiments_or_tests() -> None:
    for path in SERVER.rglob("*.py"):
        assert not {"experiments", "tests"} & {top(m) for m in imports(path)}, path


def test_every_room_of_the_server_has_a_level() -> None:
    assert {room(p) for p in server_files()} == set(LEVELS)


def test_rooms_import_lower_rooms_only() -> None:
    for path in server_files():
        here = room(path)
        for module in imports(path):
            parts = module.split(".")
            if parts[0] != "ldpspatial" or len(parts) < 2 or parts[1] not in LEVELS:
                continue
            there = parts[1]
            lower = LEVELS[there] < LEVELS[here]
            assert lower or there == here or (here, there) in EXCEPTIONS, f"{path}: {module}"


def test_public_names_are_pinned() -> None:
    for package in (client_sdk, ldpspatial):
        assert sorted(package.__all__) == list(package.__all__)
        assert all(hasattr(package, name) for name in package.__all__)
    assert ldpspatial.__all__ == [
        "Channel",
        "Estimate",
        "InputError",
        "LdpSpatialError",
        "Points",
        "PrivacyClaim",
        "Release",
        "Released",
        "ReportCounts",
        "SeparableCost",
        "Simulation",
        "SolverError",
        "StampChannel",
        "Transport",
        "UserCells",
        "compare",
        "count_cells",
        "count_reports",
        "estimate",
        "read_points",
        "recommended",
        "releases",
        "simulate",
        "sinkhorn_divergence",
        "sliced_wasserstein",
        "transport",
        "user_cells",
        "wasserstein",
    ]


def test_modules_are_attributes_of_the_package_without_an_import_of_their_own() -> None:
    code = "import ldpspatial; ldpspatial.metrics.l1, ldpspatial.transport_plot; ldpspatial.nothing"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.endswith("AttributeError: module 'ldpspatial' has no attribute 'nothing'\n")
