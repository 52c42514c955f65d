"""Rivals beside authors' code: drivers and table with stand-ins for the clones."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.authors import command
from experiments.authors.clones import (
    AHEAD,
    CENTRAL_MAPS,
    DISKS,
    HDG,
    HEAT_MAPS,
    LDPTRACE,
    SQUARE_WAVE,
)
from experiments.authors.dawa_partition import dawa_partition, least_loss
from experiments.authors.duels import Duel, duels
from experiments.papers.trajectories.places import Place
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points

# Of the functions that the drivers call, and of nothing else: answers that can be foretold.
WAVE = """
import numpy as np

def sw(values, low, high, epsilon, smoothing=False):
    assert smoothing and (low, high) == (0, 1)
    return np.histogram(values, bins=1024, range=(0, 1))[0].astype(float)
"""
TRACE = """
import sys

class GridMap:
    def __init__(self, n, *square):
        self.n = n

class Cell:
    def __init__(self, x, y):
        self.index = (x, y)

class Server:
    adjusted_data = [1.0]

def convert_raw_to_grid(raw):
    n = grid_map.n
    return [[Cell(int(x * n), int(y * n)) for x, y in trail] for trail in raw]

def estimate_max_length(walks, epsilon):
    global known
    known = walks
    return Server(), 7

def update_markov_prob(walks, epsilon, max_len):
    assert max_len == 7 and abs(epsilon - 0.9 * float(sys.argv[2])) < 1e-9
    return Server(), Server(), Server()

def generate_markov_matrix(moves, starts, ends):
    return None

def generate_synthetic_database(lengths, matrix, size):
    return known

logger.info(f'Reading {args.dataset} dataset...')
raise RuntimeError("what stands below is not run")
"""
GRIDS = """
import numpy as np
import xxhash

class AG_Uniform_Grid_1_2_way_optimal:
    def __init__(self, args):
        assert (args.attribute_num, args.consistency_iteration_num_max) == (2, 100)
        self.args, self.Grid_set, self.attribute_set = args, [], [0]

    def group_attribute(self):
        self.both = type(self)(self.args)
        self.both.attribute_set = [0, 1]

    def construct_Grid_set(self):
        self.Grid_set += [self, self.both]

    def get_LDP_Grid_set_divide_user(self, people):
        assert len(people) == self.args.user_num
        self.people = np.array(people)

    def get_consistent_Grid_set(self):
        pass

    def get_weight_update_for_2_way_group(self):
        d = self.args.domain_size
        held = np.bincount(self.people @ [d, 1], minlength=d * d).reshape(d, d)
        self.both.weighted_update_matrix = held + 0.01
"""
NOISE = """
import numpy as np
import tensorflow as tf

def get_eps_from_two_std(two_sigma):
    return 1 / two_sigma

def get_std_from_eps(eps):
    return 1 / eps

def noise(shape):
    gamma = tf.random.gamma(shape=shape, alpha=2.0, beta=0.5, dtype=tf.dtypes.float16)
    drawn = tf.random.poisson(shape=[1], lam=gamma, dtype=tf.dtypes.int32)
    return tf.reshape(tf.subtract(drawn, drawn), shape).numpy()
"""
TREE = """
from types import SimpleNamespace
import numpy as np
import pygtrie
from tqdm import tqdm
import mechanisms, metrics, plotting

def run_experiment(image, people, total_size, eps_func, threshold_func, **settings):
    assert total_size == 1024 and image.shape == (1024, 1024)
    assert settings["level_sample_size"] == settings["secagg_round_size"] == len(people)
    assert eps_func(0, 4) == 4 / (0.1 * len(people)) and threshold_func(0, 4, 0.5, 0.25) == 4
    assert not mechanisms.noise((3, 2)).any()
    tree = pygtrie.StringTrie()
    halves = [""]
    for _ in range(6):  # squares of 16 pixels
        halves = [f"{path}/{each}" for path in halves for each in ("00", "01", "10", "11")]
    counts = np.zeros((64, 64))
    np.add.at(counts, (people["x"] // 16, people["y"] // 16), 1)
    drawn = np.zeros((1024, 1024))
    for path in tqdm(sorted(each[1:] for each in halves), leave=False):
        tree[path] = 1
        row, column = (int("".join(each[k] for each in path.split("/")), 2) for k in (0, 1))
        drawn[16 * row : 16 * row + 17, 16 * column : 16 * column + 17] = counts[row, column] / 16
    assert tree.has_key("00/00/00/00/00/00") and len(tree.keys("01")) == 1024
    assert tree.longest_prefix("00/00/00/00/00/01/11") == ("00/00/00/00/00/01", 1)
    assert tree.longest_prefix("11") == (None, None)
    return [SimpleNamespace(image=drawn, tree=tree)]
"""

POINT = """package cn.edu.dll.struct.point;

public record TwoDimensionalIntegerPoint(Integer getXIndex, Integer getYIndex) {}
"""
SCHEME = """package ecnu.dll.construction.schemes.new_scheme.discretization;

import cn.edu.dll.struct.point.TwoDimensionalIntegerPoint;
import ecnu.dll.construction._config.Constant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public abstract class AbstractDiscretizedScheme {
    protected AbstractDiscretizedScheme(double... settings) {
        for (int k = settings.length - 3; k < settings.length; k++) {  // no smoothing, no origin
            if (settings[k] != 0) throw new IllegalArgumentException("k");
        }
        if (Constant.DEFAULT_STOP_VALUE_TAO != 1e-6) throw new IllegalArgumentException("tau");
    }

    public List<TwoDimensionalIntegerPoint> getNoiseValueList(
            List<TwoDimensionalIntegerPoint> people) {
        return people;
    }

    public Map<TwoDimensionalIntegerPoint, Double> statistic(
            List<TwoDimensionalIntegerPoint> reports) {
        Map<TwoDimensionalIntegerPoint, Double> shares = new HashMap<>();
        reports.forEach(each -> shares.merge(each, 1.0 / reports.size(), Double::sum));
        return shares;
    }
}
"""
KIND = """package ecnu.dll.construction.schemes.new_scheme.discretization;

public class NAME extends AbstractDiscretizedScheme {
    public NAME(DOUBLES) {
        super(WORDS);
        if (CHECKED) throw new IllegalArgumentException("settings");
    }
}
"""
DISK = "epsilon, unit, side, k, left, up"
KINDS = {
    "DiscretizedDiskScheme": (DISK, "unit != 1 || side != 10"),
    "DiscretizedDiskNonShrinkScheme": (DISK, "unit != 1 || side != 10 || epsilon != 3.5"),
    "DiscretizedHybridUniformExponentialScheme": (
        "epsilon, unit, radius, side, k, left, up",
        "unit != 1 || radius != 4 || side != 5 || epsilon != 1",
    ),
}

AHEAD_TREE = """
import numpy as np
from treelib import Tree, Node
import pandas as pd
from func_module import freqoracle

class Nodex:
    def __init__(self, frequency, divide_flag, count, interval):
        self.frequency, self.divide_flag = frequency, divide_flag
        self.count, self.interval = count, interval

def theta_calculation(height, epsilon, users, branch, dimension):
    assert users == 300 and list(branch) == [2, 2] and dimension == 2
    return 0.0

def construct_translation_vector(side, branch):
    return [np.array([i, i, j, j]) * side[0] // 2 for i in (0, 1) for j in (0, 1)]

def user_record_partition(path, height, side):
    groups = np.zeros((height, *side), np.int64)
    for row, column in np.loadtxt(path, np.int64):
        groups[0, row, column] += 1
    return groups

def ahead_tree_construction(tree, height, theta, branch, vectors, groups, epsilon):
    assert len(vectors) == 4 and 2**height == groups.shape[1] and theta == 0
    assert [node.identifier for node in tree.leaves()] == ["root"]
    for place, held in np.ndenumerate(groups.sum(0)):
        row, column = place
        data = Nodex(held / 300, True, 1, np.array([row, row + 1, column, column + 1.0]))
        tree.create_node("a cell", f"{row} {column}", parent="root", data=data)

def ahead_tree_postprocessing(tree):
    assert tree.depth() == 1 and tree.size(1) == len(tree.all_nodes()) - 1
    assert len(tree.children("root")) == tree.size(1) and tree.depth(tree.leaves()[0]) == 1
"""
ENGINE = """
from builtins import range
from dpcomp_core import util

class NAME:
    def Run(self, Q, x, epsilon, seed):
        assert util.old_div(7, 2) == 3 and util.old_div(7.0, 2) == 3.5 and epsilon and seed
        return x - 0.25 * (x == 0)
"""
DAWA = """
import numpy as np
from dpcomp_core.algorithm.dawa.cutils import cutil

class dawa2D_engine:
    def Run(self, Q, x, epsilon, seed):
        each = [query.asArray([len(x)] * 2) for query in Q.query_list]
        assert (sum(k * one for k, one in enumerate(each)).ravel() == range(x.size)).all()
        ends = cutil.L1partition_approx(x.size + 1, x.ravel(), 2.0, 0.5, 7)
        assert ends[:3].tolist() == [2, 5, 17]
        return x
"""
CUTIL = """
void L1partition_approx(int* hist, int n1, double* x, int n, double epsilon, double ratio, long s) {
    for (int i = 0; i < n1; i++) hist[i] = -1;
    hist[0] = int(epsilon);
    hist[1] = int(10 * ratio);
    hist[2] = 10 + s;
    if (ratio == 0.25 && x[0] + s > 1) hist[n] = 1;  // seeds from 2 on, or 1 with a person
}
"""


def write_central(folder: Path) -> None:
    """Write modules that give the counts back, but for a little less than nobody."""
    core = folder / "dpcomp_core" / "dpcomp_core"
    program = core / "algorithm"
    (program / "dawa" / "cutils").mkdir(parents=True)
    (core / "util.py").write_text("from past.utils import old_div\nimport past.utils\n")
    for name in ("UG", "AG", "QuadTree", "privelet2D"):
        (program / f"{name}.py").write_text(ENGINE.replace("NAME", f"{name}_engine"))
    for package in (core, program):
        (package / "__init__.py").write_text("raise RuntimeError('is not run')")
    (program / "dawa" / "__init__.py").write_text(DAWA)
    (program / "dawa" / "cutils" / "cutil.cpp").write_text(CUTIL)


def write_java(folder: Path) -> None:
    """Write the classes that RunDisks.java calls: maps of the people as they are."""
    program = (folder / "2Dim-Est" / DISKS.marker).parent
    program.mkdir(parents=True)
    (program / "AbstractDiscretizedScheme.java").write_text(SCHEME)
    for name, (words, checked) in KINDS.items():
        doubles = ", ".join(f"double {word}" for word in words.split(", "))
        text = KIND.replace("NAME", name).replace("DOUBLES", doubles)
        text = text.replace("WORDS", words).replace("CHECKED", checked)
        (program / f"{name}.java").write_text(text)
    point = folder / "java-tools" / "src/main/java/cn/edu/dll/struct/point"
    point.mkdir(parents=True)
    (point / "TwoDimensionalIntegerPoint.java").write_text(POINT)


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    for clone, text in ((SQUARE_WAVE, WAVE), (LDPTRACE, TRACE), (HDG, GRIDS), (HEAT_MAPS, TREE)):
        program = tmp_path / clone.repository.partition("/")[2] / clone.marker
        program.parent.mkdir(parents=True)
        program.write_text(text)
    (tmp_path / "federated" / HEAT_MAPS.marker).with_name("mechanisms.py").write_text(NOISE)
    return tmp_path


def few(duel: Duel, users: int) -> Duel:
    return Duel(**{**vars(duel), "users": users})


def test_authors_code_that_gives_back_what_it_gets_is_never_wrong(clones: Path) -> None:
    every = list(duels())
    trace = next(duel for duel in every if duel.clone == LDPTRACE)
    errors = few(trace, 40).play(clones, 2, 1)
    assert list(errors) == ["theirs", "one slot", "all slots"]
    assert errors["theirs"] == pytest.approx([0, 0], abs=1e-6)
    assert (errors["one slot"] > 0.5).all()
    wave = next(duel for duel in every if duel.clone == SQUARE_WAVE and duel.cells == 5)
    errors = few(wave, 2000).play(clones, 2, 1)
    # The product of the marginals of a map whose coordinates go together is not the map.
    assert 0.2 < errors["theirs"].mean() < 0.5
    assert errors["theirs"].mean() < errors["fine bins"].mean() < errors["whole cells"].mean()
    grids = next(duel for duel in every if duel.clone == HDG)
    errors = few(grids, 300).play(clones, 2, 1)
    assert list(errors) == ["theirs", "powers of two"]
    assert (errors["theirs"] < 0.5 * errors["powers of two"]).all()
    tree, *_, drawn = (few(duel, 400) for duel in every if duel.clone == HEAT_MAPS)
    for duel in (tree, drawn):  # leaves are all of one size: both maps are those of the people
        errors = duel.play(clones, 1, 1)
        assert errors["theirs"] == pytest.approx([0], abs=0.2)
        assert (errors["once"] > 1).all()


def test_trajectories_of_a_place_are_given_to_both(clones: Path) -> None:
    points = Points(np.tile([[0.1, 0.1], [0.9, 0.3]], (1500, 1)), np.repeat(np.arange(1500), 2))
    place = Place("a place", (0.0, 0.0, 1.0), points)
    mine = [duel for duel in duels([place]) if duel.data == "a place"]
    assert [(duel.cells, duel.epsilon, duel.users) for duel in mine] == [
        (15, 1.5, 1000),
        (5, 5.0, 1000),
        (15, 10.0, 1000),
    ]
    people, _ = mine[1].draw(mine[1], np.random.default_rng(1))
    assert len(people) == 1000
    assert np.argwhere(people.density).tolist() == [[0, 0], [4, 1]]
    errors = few(mine[1], 40).play(clones, 1, 1)
    assert errors["theirs"] == pytest.approx([0], abs=1e-6)
    assert errors["all slots"] > 0


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_ahead_and_central_maps_of_authors_are_run_on_the_people(tmp_path: Path) -> None:
    tree = tmp_path / "ccs21-AHEAD" / "func_module"
    tree.mkdir(parents=True)
    (tree / "freqoracle.py").touch()
    (tree.parent / AHEAD.marker).write_text(AHEAD_TREE)
    write_central(tmp_path)
    every = [few(duel, 300) for duel in duels() if duel.clone in {AHEAD, CENTRAL_MAPS}]
    assert len(every) == 14
    for duel in (every[0], *every[4:12:2], every[-1]):
        errors = duel.play(tmp_path, 1, 1)
        assert errors["theirs"] == pytest.approx([0], abs=1e-6)
        assert all(errors[label] > 0.05 for label in duel.ours)


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_partition_of_dawa_is_attacked_by_how_often_a_cell_is_alone(tmp_path: Path) -> None:
    write_central(tmp_path)
    given = ["--code", str(tmp_path), "--runs", "500", "--seed"]
    done = CliRunner().invoke(dawa_partition, [*given, "1"], catch_exceptions=False)
    assert "alone in 499 of 500 runs of nobody, 500 of one person" in done.output
    assert "loss of the partition: 0.00, at least 0.00; its part of epsilon: 1" in done.output
    done = CliRunner().invoke(dawa_partition, [*given[:1], str(tmp_path / "UG")])
    assert done.exit_code == 2
    assert least_loss(10, 400, 500) > 2
    assert least_loss(400, 10, 500) == 0


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
def test_disks_of_authors_are_run_with_the_settings_of_a_duel(tmp_path: Path) -> None:
    write_java(tmp_path)
    disk, *_, other, huem, _ = (few(duel, 300) for duel in duels() if duel.clone == DISKS)
    for duel in (disk, other, huem):
        errors = duel.play(tmp_path, 1, 1)
        assert errors["theirs"] == pytest.approx([0], abs=1e-9)
        assert all(errors[label] > 0.05 for label in duel.ours)


def test_disks_of_authors_need_both_clones_and_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_java(tmp_path)
    with monkeypatch.context() as none:
        none.setenv("PATH", str(tmp_path))
        with pytest.raises(InputError, match="2Dim-Est needs the compiler javac on PATH"):
            DISKS.folder(tmp_path)
    shutil.rmtree(tmp_path / "java-tools")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(InputError, match="dulei715/java-tools"):
        DISKS.folder(tmp_path)


def test_the_command_writes_its_table_and_leaves_clones_as_they_are(
    clones: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "docs" / "experiments" / "authors.md"
    page.parent.mkdir(parents=True)
    page.write_text("Above\n<!-- authors -->\n<!-- /authors -->\nBelow\n")
    monkeypatch.setattr(command, "DOCS", tmp_path / "docs")
    one = [
        next(few(duel, 500) for duel in duels() if duel.clone == each)
        for each in (SQUARE_WAVE, HDG)
    ]
    monkeypatch.setattr(command, "duels", lambda some=None: one if some == ["a place"] else [])
    monkeypatch.setattr(command, "places", lambda data, walks, seed: ["a place"])
    before = sorted(path for path in clones.rglob("*.py"))
    given = ["--code", str(clones), "--repeats", "2", "--write"]
    done = CliRunner().invoke(command.authors, given)
    assert done.exit_code == 2
    assert "--write needs --data" in done.output
    given += ["--data", str(tmp_path)]
    done = CliRunner().invoke(command.authors, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "| normal, 500 | 15 | 3.5 |" in page.read_text()
    assert "| normal, 500 | 16 | 1 |" in page.read_text()
    assert page.read_text().endswith("<!-- /authors -->\nBelow\n")
    assert sorted(path for path in clones.rglob("*.py")) == before


def test_what_is_missing_or_fails_is_named(tmp_path: Path, clones: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = CliRunner().invoke(command.authors, ["--code", str(empty)])
    assert done.exit_code == 1
    assert "--code must hold a clone of github.com/" in done.output
    (clones / "dp-cont" / "primitive.py").write_text("raise ValueError('not this version')")
    given = {"down": np.zeros(1), "across": np.zeros(1)}
    with pytest.raises(InputError, match="not this version"):
        SQUARE_WAVE.run(clones, given, 1.0, 5, 1)
    done = CliRunner().invoke(command.authors, ["--code", str(clones), "--seed", "-1"])
    assert done.exit_code == 2
    (clones / "LDPTrace" / "LDPTrace" / "code" / "main.py").write_text("pass")
    with pytest.raises(InputError, match="another version of the code"):
        LDPTRACE.run(clones, {"starts": np.zeros(1), "cells": np.zeros(1)}, 1.0, 5, 1)


def test_code_that_ends_well_without_a_map_has_failed(clones: Path) -> None:
    program = clones / "LDPTrace" / LDPTRACE.marker
    program.write_text("import os\n\nos._exit(0)\n" + program.read_text())
    with pytest.raises(InputError, match="LDPTrace failed: it ended with 0 and no map"):
        LDPTRACE.run(clones, {"starts": np.array([0, 1]), "cells": np.array([0])}, 1.0, 5, 1)
