"""Which package may import which: stdlib <- client_sdk <- ldpspatial <- experiments."""

import ast
import importlib
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import client_sdk
import ldpspatial
from tests.support.rooms import FLOORS

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "client_sdk" / "python" / "client_sdk"
SERVER = ROOT / "ldpspatial"

FLOOR = {room: k for k, rooms in enumerate(FLOORS) for room in rooms}
EXTRAS = {  # of the client: what modules of its extras may import besides
    "kernels.py": {"numpy", "numba"},
    "cipher_entropy.py": {"cryptography"},
    "rounds/primitives.py": {"cryptography"},
    "rounds/masks.py": {"numpy"},
    "rounds/messages.py": {"numpy"},
    "rounds/client.py": {"numpy"},
    "rounds/participant.py": {"numpy"},
}
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def imports(path: Path, late: bool = True) -> set[str]:
    """Every module that a file imports, in functions and for types only, too, if ``late``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree) if late else tree.body:
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


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_of(path: Path) -> set[str]:
    """Return the modules of the server that a module imports when it is loaded."""
    known = {name_of(p) for p in SERVER.rglob("*.py")} - {"ldpspatial"}
    found = set()
    for module in imports(path, late=False):
        parent = module.rpartition(".")[0]
        found |= {module} & known or {parent} & known
    return found - {name_of(path)}


def server_files() -> list[Path]:
    of_no_room = (SERVER / "__init__.py", SERVER / "__main__.py")
    return [p for p in SERVER.rglob("*.py") if p not in of_no_room]


def test_the_client_imports_only_itself_and_the_standard_library() -> None:
    allowed = {"client_sdk", *sys.stdlib_module_names}
    for path in CLIENT.rglob("*.py"):
        extra = EXTRAS.get(path.relative_to(CLIENT).as_posix(), set())
        outside = {top(m) for m in imports(path)} - allowed - extra
        assert not outside, f"{path.name} imports {outside}"


def test_what_every_app_runs_imports_nothing_of_the_rounds() -> None:
    for path in CLIENT.rglob("*.py"):
        if path.parent != CLIENT / "rounds":
            assert not any(m.startswith("client_sdk.rounds") for m in imports(path)), path.name


def test_what_a_device_runs_imports_neither_the_kernels_nor_their_entropy() -> None:
    for path in CLIENT.rglob("*.py"):
        assert "client_sdk.kernels" not in imports(path), path.name
        is_kernel = path.name == "kernels.py"
        assert ("client_sdk.cipher_entropy" in imports(path)) == is_kernel, path.name


def test_nothing_but_tests_imports_the_testing_module_and_the_bridge_to_ports() -> None:
    for path in [*CLIENT.rglob("*.py"), *SERVER.rglob("*.py")]:
        if path.parent != CLIENT / "conformance":  # which is a test itself
            assert "client_sdk.testing" not in imports(path), path.name
            assert not any(m.startswith("client_sdk.conformance") for m in imports(path)), path.name


def test_the_server_imports_public_names_of_the_client_only() -> None:
    names = ("client_sdk.shared", "client_sdk.kernels", "client_sdk.rounds.shared")
    public = {"client_sdk", "client_sdk.rounds", *names}
    for path in [*SERVER.rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]:
        for module in imports(path):
            if top(module) != "client_sdk" or path.name == "same_numbers_probe.py":
                continue  # the probe runs under revisions that had no such names
            home = module if module in public else module.rpartition(".")[0]
            assert home in public, f"{path}: {module}"
    for name in ("client_sdk.rounds", *names):
        module = importlib.import_module(name)
        assert all(hasattr(module, each) for each in module.__all__)


def test_the_server_never_imports_experiments_or_tests() -> None:
    for path in SERVER.rglob("*.py"):
        assert not {"experiments", "tests"} & {top(m) for m in imports(path)}, path


def test_every_room_has_a_floor() -> None:
    assert {room(p) for p in server_files()} == set(FLOOR)


def test_the_quick_tests_visit_every_room_of_more_than_a_file() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rooms = {name for name in FLOOR if (SERVER / name).is_dir()}
    assert {name for name in rooms if f"{name}/test_" not in makefile} == set()


def test_rooms_import_rooms_of_lower_floors_only() -> None:
    for path in server_files():
        here = room(path)
        for module in imports(path):
            parts = module.split(".")
            if parts[0] != "ldpspatial" or len(parts) < 2 or parts[1] not in FLOOR:
                continue
            there = parts[1]
            assert there == here or FLOOR[there] < FLOOR[here], f"{path}: {module}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name_of(path): modules_of(path) for path in SERVER.rglob("*.py")}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def test_the_page_on_architecture_shows_the_rule() -> None:
    rows = [
        f"| {k} | `{name}` | {line} |"
        for k, rooms in enumerate(FLOORS)
        for name, line in rooms.items()
    ]
    assert "\n".join(rows) in ARCHITECTURE.read_text(encoding="utf-8")


def test_the_page_on_architecture_tells_which_rooms_list_their_names() -> None:
    text = " ".join(ARCHITECTURE.read_text(encoding="utf-8").split())
    told = text.partition("so do `ldpspatial` itself, ")[2].partition(".")[0]
    folders = {path.parent.name: path.read_text() for path in SERVER.glob("*/__init__.py")}
    listing = {name for name, source in folders.items() if "__all__" in source}
    assert set(told.replace(" and", ",").replace("`", "").split(", ")) == listing


def test_public_names_are_pinned() -> None:
    for package in (client_sdk, ldpspatial):
        assert all(hasattr(package, name) for name in package.__all__)
    assert sorted(ldpspatial.__all__) == [
        "Channel",
        "EM",
        "Estimate",
        "Estimator",
        "Field",
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
        "cell_intervals",
        "compare",
        "count_cells",
        "count_reports",
        "estimate",
        "goodness_of_fit",
        "influence",
        "level_intervals",
        "people_in_area",
        "read_points",
        "recommended",
        "recommended_collection",
        "region_share",
        "releases",
        "share_change",
        "simulate",
        "sinkhorn_divergence",
        "sliced_wasserstein",
        "transport",
        "user_cells",
        "wasserstein",
    ]


def test_modules_are_attributes_of_the_package_without_an_import_of_their_own() -> None:
    code = "import ldpspatial; ldpspatial.metrics.l1, ldpspatial.errors; ldpspatial.nothing"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.endswith("AttributeError: module 'ldpspatial' has no attribute 'nothing'\n")
