"""Folders of commands at work: held while they work, removed by the next when they were killed."""

import os
import shutil
from pathlib import Path

import pytest

from ldpspatial.files import folder_lock, unfinished
from ldpspatial.files.unfinished import UNFINISHED, _machine, remove_left, unfinished_folder

LEFT = f".ldpspatial-{_machine()}-0123456789abcdef.part"

needs_locks = pytest.mark.skipif(folder_lock.fcntl is None, reason="nothing tells what was left")


def left_in(place: Path) -> Path:
    folder = place / LEFT
    folder.mkdir()
    (folder / "half").write_text("written")
    return folder


@needs_locks
def test_what_nobody_holds_is_removed_and_what_somebody_holds_is_not(tmp_path: Path) -> None:
    left = left_in(tmp_path)
    with unfinished_folder(tmp_path) as first, unfinished_folder(tmp_path) as second:
        assert not left.exists()
        remove_left(tmp_path)
        assert set(tmp_path.iterdir()) == {first, second}
    assert list(tmp_path.iterdir()) == []


@needs_locks
def test_a_folder_that_got_its_name_stays(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path) as folder:
        folder.rename(tmp_path / "result")
    remove_left(tmp_path)
    assert os.listdir(tmp_path) == ["result"]


def test_links_files_and_other_names_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / LEFT).symlink_to(tmp_path / "mine")
    (tmp_path / LEFT.replace("0123", "ffff")).write_text("a file")
    (tmp_path / f"{LEFT}.old").mkdir()
    (tmp_path / ".0123456789abcdef.part").mkdir()
    before = sorted(tmp_path.rglob("*"))
    remove_left(tmp_path)
    remove_left(tmp_path / "none")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_another_machine_works_in_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boot").write_text("another start")
    with monkeypatch.context() as there:
        there.setattr(unfinished, "BOOT_ID", tmp_path / "boot")
        with unfinished_folder(tmp_path) as folder:
            name = folder.name
    left = left_in(tmp_path).rename(tmp_path / name)  # and nobody here sees its lock
    remove_left(tmp_path)
    assert UNFINISHED.fullmatch(name)
    assert (left / "half").exists()


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "fcntl", None)
    left = left_in(tmp_path)
    with unfinished_folder(tmp_path) as folder:
        assert set(tmp_path.iterdir()) == {left, folder}
    assert list(tmp_path.iterdir()) == [left]


@needs_locks
@pytest.mark.parametrize("opened", [True, False])
def test_one_that_was_taken_for_left_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    locked, taken = unfinished._locked, []

    def late(folder: Path, wait: bool) -> int | None:
        found = locked(folder, wait) if opened or taken else None
        if wait and not taken:
            taken.append(folder)
            shutil.rmtree(folder)
        return locked(folder, wait) if found is None else found

    monkeypatch.setattr(unfinished, "_locked", late)
    with unfinished_folder(tmp_path) as folder:
        assert folder.exists()
        assert [folder] != taken
    assert list(tmp_path.iterdir()) == []
