"""The client in Pyodide, which is CPython for WebAssembly, under Node: what a browser's page runs.

Each page is a process of its own. Its files are its memory, but for the folder /lasting: that is
a folder of this machine (NODEFS), and a process that mounts it again is the page after a reload.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support import device_walk
from tests.support.npm import install, npm

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "tests" / "support" / "pyodide"
SOURCES = {
    "/app/client_sdk": str(ROOT / "client_sdk" / "python" / "client_sdk"),
    "/support": str(ROOT / "tests" / "support"),
}
START = """
import os, sys
sys.path += ["/app", "/support"]
import device_walk
from pathlib import Path
from client_sdk import Device, LedgerError, ledger_file
from device_walk import HERE, NOON, agree, expect
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def modules() -> Path:
    """Return the folder of the packages, installed once into .venv as their lock says."""
    npm()
    lock = (PACKAGES / "package-lock.json").read_bytes()
    place = ROOT / ".venv" / f"pyodide-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not place.exists():
        put(place)
    return place / "node_modules"


def put(place: Path) -> None:
    """Install beside the place and rename: another process may be doing the same."""
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        folder = Path(scratch) / "packages"
        folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PACKAGES / name, folder)
        install("Pyodide", folder)
        try:
            folder.rename(place)
        except OSError:
            assert place.exists()


def page(modules: Path, lasting: Path, script: str, status: int = 0) -> str:
    """Run a script in a page of its own and return what it printed."""
    command = ["node", str(PACKAGES / "page.mjs"), str(modules), json.dumps(SOURCES)]
    run = subprocess.run(
        [*command, json.dumps({"/lasting": str(lasting)})],
        input=START + script,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (run.returncode, run.stderr) == (status, ""), run.stderr
    return run.stdout


IN_ONE_PAGE = {
    "every module but the kernels imports, and loads the standard library only": """
before = {name.partition(".")[0] for name in sys.modules}
from client_sdk import Randomizer
report = Randomizer(NOON).report(*HERE)
agree(report.collection, NOON.digest)
agree(len(report.to_body()), 192)
foreign = device_walk.import_everything() - before
agree([sys.platform, sorted(foreign)], ["emscripten", []])
(here / "digests.json").write_text(json.dumps(device_walk.digests()))
""",
    "the memory of a page is not a place for a ledger, whatever the app says": """
for folder in ("/home/pyodide/device", "/new/folder", "/lasting/../home/other", "relative"):
    for lasting in (False, True):
        refuses(folder, lasting)
refuses(f"{here}/device", False)
Device.install(f"{here}/device", 8, lasting=True)
expect(LedgerError, lambda: Device.install(f"{here}/device", 8, lasting=True))  # once
""",
    "a link to the memory of a page is seen through": """
os.mkdir("/memory")
os.symlink("/memory", f"{here}/leads_away")
refuses(f"{here}/leads_away", True)
refuses(f"{here}/leads_away/device", True)
os.mkdir(f"{here}/device")
os.symlink(f"{here}/device", "/leads_here")
agree(Device.install("/leads_here", 8, lasting=True).remaining(), 8_000_000)
agree(len(os.listdir(f"{here}/device")), 3)
""",
    # There flock takes every lock; within a page SQLite keeps its own.
    "using the ledger while drawing is an error and not a report": """
from client_sdk import Ledger
ledger_file.BUSY_SECONDS = 0.05
ledger = Ledger.create(f"{here}/ledger.db", 8, lasting=True)
def nested():
    return Ledger(f"{here}/ledger.db").spend("c", 1, None, lambda: ("2", "report 2"))
for inside in (ledger.spent, nested):
    told = expect(LedgerError, lambda: ledger.spend("c", 1, None, lambda: (str(inside()), "x")))
    agree("locked" in told, True)
agree((ledger.spent(), ledger.pending()), (0, []))
""",
    "an older ledger beside its count is refused": """
device_walk.installs(here)
file = here / "device" / "ledger.db"
device = Device.open(file.parent)
older = file.read_bytes()
device.report(NOON, *HERE, event="visit 2")
newer = file.read_bytes()
file.write_bytes(older)
for call in (lambda: Device.open(file.parent), lambda: device.report(NOON, *HERE), device.pending):
    agree("an older copy of this ledger was put in its place" in expect(LedgerError, call), True)
file.write_bytes(newer)
agree(Device.open(file.parent).spent(), 4_000_000)
""",
}
RUN_IN_ONE_PAGE = """
import json, traceback

def refuses(folder, lasting):
    told = expect(LedgerError, lambda: Device.install(folder, 8, lasting=lasting))
    for advice in ("gone after a reload", "pass lasting=True", "nothing was installed"):
        agree(advice in told, True)
    agree(os.path.lexists(folder) and os.listdir(folder), [])

told = []
for k, script in enumerate(SCRIPTS):
    here = Path(f"/lasting/{k}")
    here.mkdir()
    try:
        exec(script, {**globals(), "here": here})
        told.append("")
    except Exception:
        told.append(traceback.format_exc())
print(json.dumps(told))
"""


def test_what_needs_no_reload(modules: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """A page takes seconds to start: these share one, each with names and a folder of its own."""
    script = RUN_IN_ONE_PAGE.replace("SCRIPTS", repr([*IN_ONE_PAGE.values()]))
    told = json.loads(page(modules, tmp_path, script))
    for name, error in zip(IN_ONE_PAGE, told, strict=True):
        with subtests.test(name):
            assert error == ""
    with subtests.test("answers are those of this Python"):
        assert json.loads((tmp_path / "0" / "digests.json").read_text()) == device_walk.digests()
    with subtests.test("a device's folder holds three files"):
        names = ["ledger.db", "ledger.db.count", "ledger.db.lock"]
        assert sorted(os.listdir(tmp_path / "1" / "device")) == names


def test_a_device_keeps_its_account_through_reloads_and_crashes(
    modules: Path, tmp_path: Path
) -> None:
    reloads = [
        ["installs"],
        ["dies_drawing"],
        ["dies_before_counting"],
        ["opens", "answers"],
        ["uploads", "stays"],
    ]
    assert [stage for stages in reloads for stage in stages] == list(device_walk.STAGES)
    for stages in reloads:
        status = device_walk.DIED if stages[0].startswith("dies") else 0
        calls = [f"device_walk.STAGES[{stage!r}](Path('/lasting'))" for stage in stages]
        page(modules, tmp_path, "\n".join(calls), status)


def test_a_page_that_dies_at_any_write_has_given_its_report_or_not(
    modules: Path, tmp_path: Path
) -> None:
    """The folder as it was before each change of a file is what a death there leaves."""
    (tmp_path / "deaths").mkdir()
    report = page(
        modules,
        tmp_path,
        f"""
device_walk.installs(Path("/lasting"))
device = Device.open("/lasting/device")
from pyodide.code import run_js
run_js('''(top) => {{
    let k = 0;
    for (const name of ["writeSync", "ftruncateSync", "truncateSync", "unlinkSync"]) {{
        const change = fs[name];
        fs[name] = (...where) => {{
            const copy = `${{top}}/deaths/${{String(k++).padStart(3, "0")}}`;
            fs.cpSync(`${{top}}/device`, copy, {{recursive: true, preserveTimestamps: true}});
            return change(...where);
        }};
    }}
}}''')({str(tmp_path)!r})
print(device.report(NOON, *HERE, event="visit 2").to_body())
""",
    ).removesuffix("\n")
    deaths = sorted(os.listdir(tmp_path / "deaths"))
    journals = sum((tmp_path / "deaths" / k / "ledger.db-journal").exists() for k in deaths)
    assert len(deaths) > 10
    assert journals > 5
    out = page(
        modules,
        tmp_path,
        """
import json
found = []
for death in sorted(Path("/lasting/deaths").iterdir()):
    device = Device.open(death)
    before = device.spent(), sorted(device.pending())
    again = device.report(NOON, *HERE, event="visit 2").to_body()
    agree((device.spent(), device.waiting()), (4_000_000, 2))
    agree(Device.open(death).report(NOON, *HERE, event="visit 2").to_body(), again)
    agree(len(os.listdir(death)), 3)
    found.append([*before, again])
print(json.dumps(found))
""",
    )
    notes = json.loads((tmp_path / "notes.json").read_text())
    kept = []
    for spent, pending, again in json.loads(out):
        is_kept = spent == 4_000_000
        assert is_kept or spent == 2_000_000
        assert pending == sorted([notes["report"], report] if is_kept else [notes["report"]])
        assert (again == report) is is_kept
        kept.append(is_kept)
    assert kept == sorted(kept)
    assert not kept[0]
    assert kept[-1]


def test_a_copy_of_all_three_files_is_not_noticed_there(modules: Path, tmp_path: Path) -> None:
    """A limit, not a wish: a page makes its files anew, so they have no identity to remember."""
    page(modules, tmp_path, "device_walk.installs(Path('/lasting'))")
    shutil.copytree(tmp_path / "device", tmp_path / "backup")
    page(
        modules,
        tmp_path,
        """
from client_sdk import BudgetError
device = Device.open("/lasting/device")
device.report(NOON, *HERE, event="visit 2")
expect(BudgetError, lambda: device.report(NOON, *HERE))
copy = Device.open("/lasting/backup")
agree((copy.spent(), copy.remaining()), (2_000_000, 7_000_000))
copy.report(NOON, *HERE, event="visit 2")
expect(BudgetError, lambda: copy.report(NOON, *HERE))
""",
    )
    assert len(os.listdir(tmp_path / "backup")) == 3


BROWSER = """
import js, pyodide_js
from pyodide.code import run_js
FS = pyodide_js.FS
os.mkdir("/kept")
options = js.Object.new()
options.fileSystemHandle = js.directory
FS.mount(FS.filesystems.KIND, options, "/kept")
sync = run_js('''(FS, populate) => new Promise((done, fail) =>
    FS.syncfs(populate, (error) => error ? fail(error) : done(null)))''')
"""


@pytest.mark.parametrize("kind", ["IDBFS", "NATIVEFS_ASYNC"])
def test_a_ledger_that_the_browser_keeps_goes_on_after_reloads(
    modules: Path, tmp_path: Path, kind: str
) -> None:
    """IDBFS keeps times of modification and saves what has another; OPFS does neither.

    Pyodide saves to OPFS what was modified after the time at which it was saved before.
    """
    first = """
device_walk.installs(Path("/kept"))
await sync(FS, False)
Device.open("/kept/device").report(NOON, *HERE, event="never saved")
"""
    second = """
await sync(FS, True)
device = Device.open("/kept/device")  # which reads everything, and seals it again
agree((device.spent(), device.waiting()), (2_000_000, 1))  # what was not saved is forgotten
ledger_file._verify = None  # nothing reads it as a whole any more
device.report(NOON, *HERE, event="visit 3")
await sync(FS, False)
"""
    others = [
        f"""
await sync(FS, True)
for stage in {stages!r}:
    device_walk.STAGES[stage](Path("/kept"))
await sync(FS, False)
"""
        for stages in (["opens", "answers", "uploads"], ["stays"])
    ]
    browser = BROWSER.replace("KIND", kind)
    out = page(
        modules,
        tmp_path,
        f"""{browser}{first}
for script in {[second, *others]!r}:
    another = await js.anotherPage()
    await another.runPythonAsync({START + browser!r} + script)
print("done")
""",
    )
    assert out == "done\n"
    assert os.listdir(tmp_path) == []
