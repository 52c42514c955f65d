"""compare: every run once, with its own seed, whatever happens in between."""

import gc
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from client_sdk import Grid
from ldpspatial.comparison import METRICS, compare, runs, scores
from ldpspatial.comparison.compare import compare_people
from ldpspatial.comparison.folder import (
    RUNS,
    SETTINGS,
    RunFolder,
    check_labels,
    earlier_root,
    with_earlier,
)
from ldpspatial.comparison.runs import SCHEMA
from ldpspatial.errors import InputError, SolverError
from ldpspatial.files import folder_lock
from ldpspatial.metrics import l1
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.release.non_private import NonPrivate
from ldpspatial.release.registry import find_releases
from tests.support.blurs import Bare, Blur, Counting, Fragile, Frozen, Killed, Threaded

comparing = import_module("ldpspatial.comparison.compare")  # the package has a function so named
PLANE = Grid.plane(0, 0, 8.0, 8)
PEOPLE = np.random.default_rng(0).normal(4, 1, (200, 2))
UNTIMED = [name for name in SCHEMA.names if name != "seconds"]


def play(seed: int = 1, **changed: Any) -> pa.Table:
    asked: dict[str, Any] = {
        "epsilons": [0.5, 2.0],
        "releases": [Blur()],
        "repeats": 3,
        "metrics": ["l1", "mse"],
    }
    return compare(PEOPLE, PLANE, rng=np.random.default_rng(seed), **(asked | changed))


def test_a_row_for_every_run_in_the_order_asked_for() -> None:
    table = play(releases=[Blur(), NonPrivate()])
    assert table.schema == SCHEMA
    settings = zip(*(table[c].to_pylist() for c in ("release", "epsilon", "repeat")), strict=True)
    assert list(settings) == [
        (name, epsilon, repeat)
        for name in ("blur", "non-private")
        for epsilon in (0.5, 2.0)
        for repeat in range(3)
    ]
    assert table["users"].unique().to_pylist() == [200]
    assert table["cells"].unique().to_pylist() == [8]


def test_a_row_carries_claim_seed_and_versions() -> None:
    row = play(data="three clouds").to_pylist()[0]
    assert row["claim_epsilon"] == 0.5
    assert row["claim_neighbours"] == "add or remove"
    assert row["replacement_epsilon"] == 1.0
    assert row["data"] == "three clouds"
    assert row["parameters"] == "Blur(width=1.0)"
    assert set(json.loads(row["versions"])) >= {"python", "numpy", "ldpspatial"}
    assert json.loads(row["facts"])["share"] == pytest.approx(np.exp(-0.5))


def test_a_run_can_be_repeated_from_its_row() -> None:
    row = play(users=[50]).to_pylist()[4]
    everybody = user_cells(PEOPLE, PLANE)
    chosen = everybody.sample(50, np.random.default_rng(int(row["people_seed"], 16)))
    rng = np.random.default_rng(int(row["seed"], 16))
    again = Blur().release(chosen, row["epsilon"], rng)
    assert l1(chosen.density, again.density) == row["l1"]


def test_seeds_differ_between_runs_and_people_are_the_same_for_all_releases() -> None:
    wide = Blur(width=0.5)
    table = play(releases={"blur": Blur(), "wide": wide}, users=[20, 50])
    assert len(set(table["seed"].to_pylist())) == table.num_rows == 24
    people = {(row["users"], row["repeat"]): row["people_seed"] for row in table.to_pylist()}
    assert len(set(people.values())) == 6
    for row in table.to_pylist():
        assert row["people_seed"] == people[row["users"], row["repeat"]]


def test_equal_seeds_give_equal_tables_and_others_others() -> None:
    assert play().select(UNTIMED) == play().select(UNTIMED)
    assert play()["l1"] != play(seed=2)["l1"]


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_the_table_is_the_same_on_every_backend(backend: str) -> None:
    with joblib.parallel_config(backend, n_jobs=2):
        assert play().select(UNTIMED) == play().select(UNTIMED)
        assert play().select(UNTIMED) == play(jobs=1).select(UNTIMED)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_linear_algebra_adds_up_in_one_thread_wherever_it_runs(backend: str, jobs: int) -> None:
    with joblib.parallel_config(backend, n_jobs=jobs), threadpool_limits(2):
        facts = play(releases=[Threaded()])["facts"].to_pylist()
    assert {json.loads(each)["threads"] for each in facts} == {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_that_play_set_apart_what_they_have_loaded_and_the_callers_does_not(
    jobs: int,
) -> None:
    before = gc.get_freeze_count()
    facts = [json.loads(each) for each in play(releases=[Frozen()], jobs=jobs)["facts"].to_pylist()]
    assert gc.get_freeze_count() == before
    elsewhere = [each for each in facts if each["process"] != os.getpid()]
    assert len(elsewhere) == (0 if jobs == 1 else len(facts))
    # Two processes play six runs: at least one has played before.
    assert not elsewhere or max(each["frozen"] for each in elsewhere) > 10_000


def test_default_releases_are_played_without_the_slowest_library() -> None:
    """scipy.stats takes 0.4 s to load, in every process that plays."""
    code = """
import sys
import numpy as np
from client_sdk import Grid
from ldpspatial.cli.compare import DEFAULT_RELEASES
from ldpspatial.comparison import compare
rng = np.random.default_rng(1)
people = rng.normal(4, 1, (300, 2))
compare(people, Grid.plane(0, 0, 8, 8), [1.0], DEFAULT_RELEASES, 1, rng, jobs=1)
assert "scipy.stats" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_that_is_killed_is_told_of_and_the_comparison_goes_on(tmp_path: Path) -> None:
    trouble = tmp_path / "trouble"
    trouble.touch()
    killed = Killed(trouble=str(trouble))
    with pytest.raises(InputError, match=r"a process that played was killed; .* got jobs 2"):
        play(releases=[killed], folder=tmp_path / "runs", jobs=2)
    trouble.unlink()
    again = play(releases=[killed], folder=tmp_path / "runs", jobs=2)
    assert again.select(UNTIMED) == play(releases=[killed]).select(UNTIMED)


def test_resolutions_and_numbers_of_users() -> None:
    table = play(cells=[4, 8], users=[10, 20], epsilons=[1.0], repeats=1)
    found = list(zip(table["cells"].to_pylist(), table["users"].to_pylist(), strict=True))
    assert found == [(4, 10), (4, 20), (8, 10), (8, 20)]


def test_the_truth_is_of_the_users_drawn_or_of_all() -> None:
    drawn = play(releases=[NonPrivate()], users=[20])
    everybody = play(releases=[NonPrivate()], users=[20], truth="all")
    assert drawn["l1"].to_pylist() == [0.0] * 6
    assert min(everybody["l1"].to_pylist()) > 0.1


def test_maps_that_are_no_square_are_compared_by_their_cells() -> None:
    people = {6: cells_by_user(np.arange(12), np.arange(12) % 5, (4, 6))}
    rng = np.random.default_rng(1)
    table = compare_people(people, [1.0], [Blur()], 2, rng, metrics=list(METRICS))
    assert table.num_rows == 2
    assert all(np.isfinite(table[name].to_numpy()).all() for name in METRICS)


def test_blocks_are_for_metrics_that_move_mass_only() -> None:
    coarse = play(blocks=4, metrics=["l1", "w1", "w2"], repeats=1)
    fine = play(metrics=["l1", "w1", "w2"], repeats=1)
    assert coarse["l1"] == fine["l1"]
    for name in ("w1", "w2"):
        both = np.array([coarse[name], fine[name]])
        assert (both[0] != both[1]).all()
        assert abs(both[0] - both[1]).max() < 2 / 4


def test_metrics_that_were_not_asked_for_are_null() -> None:
    assert play()["w2"].null_count == 6


def test_an_interruption_loses_no_finished_run(tmp_path: Path) -> None:
    trouble = tmp_path / "trouble"
    trouble.touch()
    fragile = Fragile(trouble=str(trouble))
    with pytest.raises(SolverError, match="at epsilon 2, 8 cells, repeat 0: interrupted"):
        play(releases=[fragile], folder=tmp_path / "runs")
    before = (tmp_path / "runs" / RUNS).read_bytes()
    assert before.count(b"\n") == 3
    trouble.unlink()
    seen: list[tuple[int, int]] = []
    table = play(
        releases=[fragile], folder=tmp_path / "runs", progress=lambda *done: seen.append(done)
    )
    assert seen == [(4, 6), (5, 6), (6, 6)]
    assert (tmp_path / "runs" / RUNS).read_bytes().startswith(before)
    assert table.select(UNTIMED) == play(releases=[fragile]).select(UNTIMED)


def test_a_line_cut_off_by_a_crash_is_played_again(tmp_path: Path) -> None:
    whole = play(folder=tmp_path)
    file = tmp_path / RUNS
    file.write_bytes(file.read_bytes()[:-30])
    again = play(folder=tmp_path)
    assert again.select(UNTIMED) == whole.select(UNTIMED)
    assert file.read_bytes().count(b"\n") == 6
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_a_folder_goes_on_with_its_seed_and_takes_more_runs(tmp_path: Path) -> None:
    first = play(folder=tmp_path)
    root = earlier_root(tmp_path)
    more = play(seed=2, folder=tmp_path, repeats=4, epsilons=[0.5, 2.0, 3.0])
    assert earlier_root(tmp_path) == root
    assert more.num_rows == 12
    assert set(first["seed"].to_pylist()) < set(more["seed"].to_pylist())


def test_metrics_are_added_to_finished_runs_by_playing_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = play(folder=tmp_path, metrics=["l1"])
    measured: list[Any] = []
    monkeypatch.setattr(runs, "score", lambda *a: measured.append(a[2]) or scores.score(*a))
    both = play(folder=tmp_path, metrics=["mse", "l1"], epsilons=[0.5, 2.0, 3.0])
    assert measured == [("mse",)] * 6 + [("mse", "l1")] * 3  # only what is missing
    at_once = play(metrics=["l1", "mse"], epsilons=[0.5, 2.0, 3.0])
    assert both.select(UNTIMED) == at_once.select(UNTIMED)
    assert both["seconds"].slice(0, 6) == first["seconds"]
    assert json.loads((tmp_path / SETTINGS).read_text())["metrics"] == ["l1", "mse"]
    measured.clear()
    monkeypatch.setattr(comparing, "versions", lambda: "of another library")
    play(folder=tmp_path, metrics=["l1", "range"], epsilons=[0.5], repeats=1)
    assert measured == [("l1", "mse", "range")]  # another map, perhaps: nothing of it is kept


def test_a_finished_folder_is_told_as_a_whole(tmp_path: Path) -> None:
    first = play(folder=tmp_path)
    more = play(folder=tmp_path, releases=["non-private"], epsilons=[3.0])
    whole = with_earlier(tmp_path, more)
    assert whole.slice(0, 3) == more
    assert whole.slice(3) == first


def test_a_label_stands_for_one_release_in_a_folder(tmp_path: Path) -> None:
    """Or the finished runs of one would vanish from tables, and a name stand for another one."""
    check_labels(tmp_path / "new", {"blur": Blur()})
    play(folder=tmp_path)
    check_labels(tmp_path, {"blur": Blur(), "non-private": NonPrivate()})
    for other in (Blur(width=0.1), NonPrivate()):
        with pytest.raises(InputError, match=r"'blur' is Blur.* now; give it another label"):
            check_labels(tmp_path, {"blur": other})
    with (tmp_path / RUNS).open("ab") as stream:
        stream.write(b'{"key": "cut')
    check_labels(tmp_path, {"blur": Blur()})
    with pytest.raises(InputError, match="now; give it another label"):  # cut off is not damaged
        check_labels(tmp_path, {"blur": Blur(width=0.1)})


def test_a_release_has_one_spelling_in_a_folder(tmp_path: Path) -> None:
    """Or its runs would be two curves."""
    short, long = (find_releases([f"sparse-emd:{name}=3"]) for name in ("w", "keep"))
    play(folder=tmp_path, releases=short, repeats=1)
    check_labels(tmp_path, short)
    with pytest.raises(InputError, match=r"'sparse-emd:keep=3' is 'sparse-emd:w=3' in .*call it"):
        check_labels(tmp_path, long)
    own = {"three nodes": long["sparse-emd:keep=3"]}  # of one's own, and so no spelling
    check_labels(tmp_path, own)
    check_labels(tmp_path, find_releases(["sparse-emd:keep=4", "sparse-emd"]))


def test_settings_of_one_release_have_labels_that_tell_them_apart() -> None:
    table = play(releases=[Blur(), Blur(width=0.1), "sparse-emd:w=3"], repeats=1, epsilons=[1.0])
    assert table["release"].to_pylist() == ["blur", "blur:width=0.1", "sparse-emd:w=3"]


def test_another_setting_of_a_release_is_another_run(tmp_path: Path) -> None:
    first = play(folder=tmp_path)
    other = play(folder=tmp_path, releases=[Blur(width=0.1)])
    assert max(other["l1"].to_pylist()) < min(first["l1"].to_pylist())


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"sigma": 1.0}, "sigma"), ({"truth": "all"}, "truth"), ({"data": "others"}, "data")],
)
def test_a_folder_of_another_comparison_is_refused(
    tmp_path: Path, changed: dict[str, Any], field: str
) -> None:
    play(folder=tmp_path)
    before = (tmp_path / RUNS).read_bytes()
    with pytest.raises(InputError, match=f"but {field} is"):
        play(folder=tmp_path, **changed)
    assert (tmp_path / RUNS).read_bytes() == before


def test_runs_of_other_people_are_never_mixed_in(tmp_path: Path) -> None:
    play(folder=tmp_path)
    moved = PEOPLE.copy()
    moved[0] = 7.5
    other = Grid.plane(0, 0.001, 8.0, 8)
    for people, square in ((moved, PLANE), (PEOPLE, other), (PEOPLE[:-1], PLANE)):
        for side in (8, 4):  # those of the folder, and a resolution that it has not seen
            with pytest.raises(InputError, match="but positions is"):
                compare(people, square, [1.0], [Blur()], 1, np.random.default_rng(1), cells=[side],
                        metrics=["l1", "mse"], folder=tmp_path)  # fmt: skip


def test_runs_of_the_same_cells_visited_more_often_are_other_runs(tmp_path: Path) -> None:
    once = cells_by_user([0, 0, 1], [1, 2, 3], (2, 2))
    twice = cells_by_user([0, 0, 0, 1], [1, 2, 2, 3], (2, 2))
    for people, message in ((once, None), (twice, "but people is")):
        with pytest.raises(InputError, match=message) if message else nullcontext():
            compare_people({2: people}, [1.0], [Blur()], 1, np.random.default_rng(1),
                           metrics=["l1"], folder=tmp_path)  # fmt: skip


def test_resolutions_may_be_added_to_a_folder(tmp_path: Path) -> None:
    first = play(folder=tmp_path, cells=[4])
    both = play(folder=tmp_path, cells=[4, 8])
    assert both.num_rows == 12
    assert both.slice(0, 6) == first
    assert play(folder=tmp_path, cells=[8]) == both.slice(6, 6)


@pytest.mark.parametrize(
    "line",
    [b"garbage", b"[]", b"\xff\xfe", b'{"key": "k", "row": {}}', {"l1": "abc"}, {"users": 1.5}],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes | dict[str, object]) -> None:
    play(folder=tmp_path)
    lines = (tmp_path / RUNS).read_bytes().splitlines()
    if isinstance(line, dict):
        held = json.loads(lines[1])
        line = json.dumps(held | {"row": held["row"] | line}).encode()
    (tmp_path / RUNS).write_bytes(b"\n".join([lines[0], line, *lines[2:], b""]))
    with pytest.raises(InputError, match=r"line 2 of .*runs.jsonl is damaged or of another"):
        play(folder=tmp_path)


def test_seeds_depend_on_the_data() -> None:
    first, other = (play(data=name, users=[50]) for name in ("a", "b"))
    assert not set(first["seed"].to_pylist()) & set(other["seed"].to_pylist())
    assert not set(first["people_seed"].to_pylist()) & set(other["people_seed"].to_pylist())


def test_users_are_drawn_from_the_smallest_map() -> None:
    edge = np.vstack([PEOPLE, [[7.999, 7.999]]])
    people = {8: user_cells(edge, PLANE), 4: user_cells(PEOPLE, Grid.plane(0, 0, 8, 4))}
    with pytest.raises(InputError, match="users must be at most 200"):
        compare_people(people, [1.0], [Blur()], 1, np.random.default_rng(1), users=[201])


def test_facts_and_names_of_any_kind_become_text() -> None:
    table = play(releases=[Counting()], data=Path("some/where.csv"), repeats=1)
    assert json.loads(table["facts"][0].as_py()) == {"share": 1}
    assert table["data"][0].as_py() == "some/where.csv"


def test_of_two_that_begin_a_folder_at_once_one_gives_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def other_first(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        assert RunFolder(tmp_path, {"data": "x"}, "other").root == "other"
        link(source, target)

    monkeypatch.setattr(os, "link", other_first)
    assert RunFolder(tmp_path, {"data": "x"}, "own").root == "other"
    assert [each.name for each in tmp_path.iterdir()] == [SETTINGS]
    with pytest.raises(InputError, match="data is 'x'"):
        RunFolder(tmp_path, {"data": "y"}, "own")


@pytest.mark.skipif(folder_lock.fcntl is None, reason="folders have no locks there")
def test_nobody_plays_in_a_folder_in_which_somebody_plays(tmp_path: Path) -> None:
    folder, link = tmp_path / "runs", tmp_path / "link"
    first = play(folder=folder)
    link.symlink_to(folder)
    for held, asked in ((folder, folder), (folder, link), (link, folder)):
        with (
            RunFolder(held, {}, "any").held(),
            pytest.raises(InputError, match=r"another comparison does in .*: wait"),
        ):
            play(folder=asked)
    assert play(folder=folder) == first


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="folder must be new, empty"):
        play(folder=tmp_path)
    with pytest.raises(InputError, match="folder must be one that can be written"):
        play(folder=tmp_path / "thesis.txt")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_damaged_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / SETTINGS).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        play(folder=tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilons": [1, 1.0]}, "epsilons must differ"),
        ({"releases": ["dim"]}, "releases must be of .*, got 'dim'"),
        ({"releases": [Bare()]}, "releases must be dataclasses, got Bare"),
        ({"jobs": 0}, "jobs must be 1 or more, or -1 for every core, got 0"),
        ({"jobs": -2}, "jobs must be 1 or more, or -1 for every core, got -2"),
        ({"releases": [Blur(), Blur(1.0)]}, "labels, got 'blur' twice"),
        (
            {"users": [201]},
            "users must be at most 200, the number of those inside the map, got 201",
        ),
        ({"cells": [4, 4]}, "cells must differ"),
        ({"metrics": ["w3"]}, "metrics must be one of w2, .*, got 'w3'"),
        ({"blocks": 3}, "blocks must divide"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        play(**changed)
