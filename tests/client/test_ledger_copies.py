"""A ledger that was copied, restored, linked or mounted twice: refused, or right."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from client_sdk import BudgetError, Ledger, LedgerError
from tests.support.draws import draw, never

STOP = "keep the file and stop reporting"
NAMES = ("ledger.db", "ledger.db.lock", "ledger.db.count")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "device").mkdir()
    return tmp_path / "device"


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    ledger = Ledger.create(folder / "ledger.db", cap_epsilon=1)
    ledger.spend("c", 400_000, None, draw("1"))
    return ledger


def refuses(ledger: Ledger, file: Path, message: str) -> None:
    for call in (lambda: Ledger(file), lambda: ledger.spend("c", 1, None, never), ledger.pending):
        with pytest.raises(LedgerError, match=message) as caught:
            call()
        assert STOP in str(caught.value)


# An older state is put back


def copy_over(backup: Path, folder: Path, name: str) -> None:
    """As cp -rp does: files keep their inodes, folders get what they lack."""
    if (backup / name).is_dir():
        shutil.copytree(backup / name, folder / name, dirs_exist_ok=True)
    else:
        shutil.copy2(backup / name, folder / name)


def replace(backup: Path, folder: Path, name: str) -> None:
    """As rsync does: something new takes the place of the old."""
    copy_over(backup, folder.parent, name)
    if (folder / name).is_dir():
        (folder / name).rename(folder.parent / "old")
        shutil.rmtree(folder.parent / "old")
    (folder.parent / name).replace(folder / name)


def in_place(backup: Path, folder: Path) -> None:
    for name in NAMES:
        copy_over(backup, folder, name)


def by_renaming(backup: Path, folder: Path) -> None:
    for name in NAMES:
        replace(backup, folder, name)


def whole_folder(backup: Path, folder: Path) -> None:
    """Deleted and copied back at once, so that inodes may well be the same again."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def whole_folder_with_everything(backup: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    subprocess.run(["cp", "-a", str(backup), str(folder)], check=True)


def moved_back(backup: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    backup.rename(folder)


@pytest.mark.parametrize(
    "restore", [in_place, by_renaming, whole_folder, whole_folder_with_everything, moved_back]
)
@pytest.mark.skipif(sys.platform == "win32", reason="a copy has its times, and needs cp")
def test_a_restored_folder_is_refused(
    ledger: Ledger, folder: Path, restore: Callable[[Path, Path], None]
) -> None:
    backup = folder.parent / "backup"
    shutil.copytree(folder, backup)
    ledger.spend("c", 600_000, None, draw("2"))
    restore(backup, folder)
    refuses(ledger, folder / "ledger.db", "copied, moved or restored")


def count_deleted_and_copied(backup: Path, folder: Path) -> None:
    """As rsync --inplace --delete does: a new count may get the inode of the old one."""
    copy_over(backup, folder, "ledger.db")
    shutil.rmtree(folder / "ledger.db.count")
    subprocess.run(["cp", "-a", str(backup / "ledger.db.count"), str(folder)], check=True)


def count_replaced_by_name(backup: Path, folder: Path) -> None:
    copy_over(backup, folder, "ledger.db")
    number_of(folder).unlink()
    copy_over(backup, folder, "ledger.db.count")


def both_deleted_and_copied(backup: Path, folder: Path) -> None:
    for name in ("ledger.db.count", "ledger.db"):
        subprocess.run(["rm", "-r", str(folder / name)], check=True)
        subprocess.run(["cp", "-a", str(backup / name), str(folder)], check=True)


@pytest.mark.parametrize(
    "restore", [count_deleted_and_copied, count_replaced_by_name, both_deleted_and_copied]
)
@pytest.mark.skipif(sys.platform == "win32", reason="a copy has its times, and needs cp")
def test_an_inode_that_is_used_again_does_not_pass_for_the_first(
    ledger: Ledger, folder: Path, restore: Callable[[Path, Path], None]
) -> None:
    """Where deleted files leave their inodes to the next ones, as on ext4, the generation tells."""
    shutil.copytree(folder, folder.parent / "backup")
    for k in range(3):
        ledger.spend("c", 1, None, draw(f"later {k}"))
    restore(folder.parent / "backup", folder)
    refuses(ledger, folder / "ledger.db", "copied, moved or restored")


def test_two_restores_in_a_row_are_refused(ledger: Ledger, folder: Path) -> None:
    """The second gets the inodes that the first has freed."""
    for number in (1, 2):
        shutil.copytree(folder, folder.parent / f"backup {number}")
        ledger.spend("c", 1, None, draw(f"later {number}"))
    for number in (2, 1, 2):
        for name in ("ledger.db", "ledger.db.count"):
            replace(folder.parent / f"backup {number}", folder, name)
        refuses(ledger, folder / "ledger.db", "copied, moved or restored")


@pytest.mark.parametrize("later", [1, 2, 5])
def test_an_older_ledger_beside_its_count_is_refused(
    ledger: Ledger, folder: Path, later: int
) -> None:
    file = folder / "ledger.db"
    before = file.read_bytes()
    for k in range(later):
        ledger.spend("c", 1, None, draw(f"later {k}"))
    now = file.read_bytes()
    file.write_bytes(before)
    refuses(ledger, file, "an older copy of this ledger was put in its place")
    file.write_bytes(now)
    assert Ledger(file).spent() == ledger.spent() == 400_000 + later


@pytest.mark.parametrize("restore", [copy_over, replace])
@pytest.mark.parametrize(
    "names",
    [names for n in (1, 2, 3) for names in combinations(NAMES, n)],
    ids=lambda names: "+".join(name[9:] or "db" for name in names),
)
@pytest.mark.skipif(sys.platform == "win32", reason="a copy has its times")
def test_what_is_put_back_in_any_combination_is_refused(
    ledger: Ledger,
    folder: Path,
    names: tuple[str, ...],
    restore: Callable[[Path, Path, str], None],
) -> None:
    shutil.copytree(folder, folder.parent / "backup")
    for k in range(3):
        ledger.spend("c", 1, None, draw(f"later {k}"))
    for name in names:
        restore(folder.parent / "backup", folder, name)
    refuses(ledger, folder / "ledger.db", "copied|older copy|its count")


def test_an_older_ledger_that_was_renamed_into_place_is_refused(
    ledger: Ledger, folder: Path
) -> None:
    file = folder / "ledger.db"
    shutil.copy2(file, folder / "old")
    ledger.acknowledge("1")  # any commit counts
    (folder / "old").replace(file)
    refuses(ledger, file, "its files are not those it was made with")


def number_of(folder: Path) -> Path:
    """Return the one file of the count, whose name is the number."""
    (number,) = (folder / "ledger.db.count").iterdir()
    return number


def test_an_older_count_is_refused(ledger: Ledger, folder: Path) -> None:
    before = number_of(folder)
    for k in range(2):
        ledger.spend("c", 1, None, draw(f"later {k}"))
    number_of(folder).rename(before)
    refuses(ledger, folder / "ledger.db", "an older copy of its count was put in place")


def test_a_second_name_in_the_count_is_refused(ledger: Ledger, folder: Path) -> None:
    number = number_of(folder)
    ledger.acknowledge("1")
    number.touch()
    refuses(ledger, folder / "ledger.db", "another state of its count was put in place")
    number.unlink()
    assert ledger.spent() == 400_000


def test_one_commit_that_was_not_counted_is_a_process_that_died(
    ledger: Ledger, folder: Path
) -> None:
    file = folder / "ledger.db"
    older, uncounted = file.read_bytes(), number_of(folder)
    ledger.spend("c", 1, None, draw("2"))
    number_of(folder).rename(uncounted)
    assert ledger.pending() == ["report 1", "report 2"]
    assert number_of(folder) != uncounted  # counted before the report was shown
    file.write_bytes(older)
    refuses(ledger, file, "an older copy of this ledger")


@pytest.mark.parametrize("name", ["1", "x" * 20, "0" * 21, "\u0661" * 20, "-" + "0" * 19])
def test_a_damaged_count_is_refused(ledger: Ledger, folder: Path, name: str) -> None:
    number_of(folder).rename(folder / "ledger.db.count" / name)
    refuses(ledger, folder / "ledger.db", "its count is damaged")


def test_a_foreign_file_beside_the_count_is_left_alone(ledger: Ledger, folder: Path) -> None:
    foreign = folder / "ledger.db.count" / ".DS_Store"
    foreign.write_bytes(b"how to show the folder")
    ledger.spend("c", 1, None, draw("new"))
    assert Ledger(folder / "ledger.db").spent() == ledger.spent() > 0
    assert foreign.exists()


@pytest.mark.parametrize("make", [Path.touch, getattr(os, "mkfifo", Path.touch)])
def test_a_count_of_another_kind_is_refused(
    ledger: Ledger, folder: Path, make: Callable[[Path], None]
) -> None:
    shutil.rmtree(folder / "ledger.db.count")
    make(folder / "ledger.db.count")
    refuses(ledger, folder / "ledger.db", "its count is damaged")


@pytest.mark.parametrize(
    ("name", "message"), [("ledger.db.lock", "lock file is missing"), ("ledger.db.count", "count")]
)
def test_a_ledger_without_its_lock_or_count_is_refused_and_they_are_not_made_anew(
    ledger: Ledger, folder: Path, name: str, message: str
) -> None:
    (folder / name).rename(folder.parent / name)
    refuses(ledger, folder / "ledger.db", message)
    assert not (folder / name).exists()


# Another name, another place


@pytest.mark.skipif(sys.platform == "win32", reason="a copy has its times")
def test_a_clone_is_refused_and_the_original_goes_on(ledger: Ledger, folder: Path) -> None:
    clone = folder.parent / "clone"
    shutil.copytree(folder, clone)
    with pytest.raises(LedgerError, match="copied, moved or restored"):
        Ledger(clone / "ledger.db")
    ledger.spend("c", 600_000, None, draw("2"))
    shutil.copy(folder / "ledger.db", folder.parent / "alone.db")
    with pytest.raises(LedgerError, match="copied or moved: its lock file is missing"):
        Ledger(folder.parent / "alone.db")


def test_a_folder_may_be_renamed(ledger: Ledger, folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    moved = Ledger(folder.parent / "elsewhere" / "ledger.db")
    moved.spend("c", 600_000, None, draw("2"))
    with pytest.raises(BudgetError):
        moved.spend("c", 1, None, never)
    with pytest.raises(LedgerError, match="no such file"):
        ledger.spent()


def test_links_to_file_and_folder_share_one_budget(ledger: Ledger, folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    (folder.parent / "link.db").symlink_to(folder / "ledger.db")
    names = (folder.parent / "link" / "ledger.db", folder.parent / "link.db")
    for k, name in enumerate(names):
        Ledger(name).spend("c", 300_000, None, draw(f"link {k}"))
    for name in (*names, folder / "ledger.db"):
        with pytest.raises(BudgetError):
            Ledger(name).spend("c", 1, None, never)
    assert ledger.spent() == 10**6
    assert {entry.name for entry in folder.parent.iterdir()} == {"device", "link", "link.db"}


def test_a_link_that_is_turned_to_another_ledger_spends_from_that_one(
    ledger: Ledger, folder: Path
) -> None:
    (folder.parent / "other").mkdir()
    other = Ledger.create(folder.parent / "other" / "ledger.db", 1)
    link = folder.parent / "link.db"
    link.symlink_to(folder / "ledger.db")
    through = Ledger(link)
    link.unlink()
    link.symlink_to(folder.parent / "other" / "ledger.db")
    through.spend("c", 5, None, draw("2"))
    assert (ledger.spent(), other.spent()) == (400_000, 5)


@pytest.mark.skipif(not hasattr(os, "link"), reason="needs hard links")
def test_a_second_name_is_refused_until_it_is_gone(ledger: Ledger, folder: Path) -> None:
    second = folder.parent / "second.db"
    os.link(folder / "ledger.db", second)
    for file in (second, folder / "ledger.db"):
        with pytest.raises(LedgerError, match="second name; remove the hard link"):
            Ledger(file)
    second.unlink()
    ledger.spend("c", 1, None, draw("2"))


MOUNTS = """
set -e
mount --bind "$1/device" "$1/again"
: > "$1/alone.db"
mount --bind "$1/device/ledger.db" "$1/alone.db"
exec "$2" -c "$3" "$1"
"""
IN_TWO_MOUNTS = """
import sys
from client_sdk import BudgetError, Ledger, LedgerError, file_lock
file_lock.LOCK_SECONDS = 0.2
top = sys.argv[1]
first, second = Ledger(top + "/device/ledger.db"), Ledger(top + "/again/ledger.db")

def draw():
    for path in (top + "/again/ledger.db", top + "/alone.db"):
        try:
            print(Ledger(path).spend("c", 1, None, lambda: ("3", "report 3")))
        except LedgerError as error:
            print(str(error).split(";")[0].split(": ", 1)[1])
    return "2", "report 2"

first.spend("c", 600_000, None, draw)
try:
    second.spend("c", 1, None, draw)
except BudgetError:
    print("no budget")
"""


@pytest.mark.skipif(
    not shutil.which("unshare") or not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="needs the right to mount",
)
def test_two_mounts_of_one_folder_share_one_lock(ledger: Ledger, folder: Path) -> None:
    top = folder.parent
    (top / "again").mkdir()
    command = ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", str(top), sys.executable]
    run = subprocess.run(
        [*command, IN_TWO_MOUNTS], capture_output=True, text=True, check=False, timeout=60
    )
    if "mount" in run.stderr or "unshare" in run.stderr:
        pytest.skip("needs the right to mount")
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "locked",
        "copied or moved: its lock file is missing",
        "no budget",
    ]
    assert ledger.spent() == 10**6
