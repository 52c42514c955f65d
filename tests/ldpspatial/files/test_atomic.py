"""replacing: a file is there in full or not at all."""

import os
import stat
from pathlib import Path

import pytest

from ldpspatial.errors import InputError
from ldpspatial.files.atomic import replacing


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"old")
    with replacing(target) as stream:
        stream.write(b"new")
        stream.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["result"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_file_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "result"
    target.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(target) as stream:
            stream.write(b"half of the")
            raise error

    with pytest.raises(error):
        interrupted()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result"]


def test_an_unfinished_file_is_hidden_beside_its_target(tmp_path: Path) -> None:
    with replacing(tmp_path / "result") as stream:
        (name,) = os.listdir(tmp_path)
        assert Path(stream.name).parent == tmp_path
    assert name.startswith(".result.")
    assert name.endswith(".part")


def test_others_may_read_the_file_as_far_as_the_umask_lets_them(tmp_path: Path) -> None:
    plain, replaced = tmp_path / "plain", tmp_path / "replaced"
    plain.touch()
    with replacing(replaced):
        pass
    assert stat.S_IMODE(replaced.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_secret_file_is_its_owners_alone_from_the_first_byte_on(tmp_path: Path) -> None:
    with replacing(tmp_path / "secret", mode=0o600) as stream:
        assert stat.S_IMODE(Path(stream.name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    with replacing(str(tmp_path / "link")) as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_target_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"path must name a file, .* is a folder"):
        replacing(tmp_path / "folder").__enter__()
    with pytest.raises(InputError, match=r"path must name a file, .* no regular file"):
        replacing(os.devnull).__enter__()
    with pytest.raises(InputError, match="path must lie in a folder that can be written"):
        replacing(tmp_path / "missing" / "result").__enter__()
    assert os.listdir(tmp_path) == ["folder"]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    synced, moved = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        done.append("fsync")
        synced(descriptor)

    def replace(path: Path, to: Path) -> Path:
        done.append("replace")
        return moved(path, to)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    with replacing(tmp_path / "f") as stream:
        stream.write(b"x")
    assert done == ["fsync", "replace"]


def test_all_bytes_are_in_the_file_when_the_disk_is_asked_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    with replacing(tmp_path / "f") as stream:
        stream.write(b"half of a buffer")
    assert sizes == [16]
