"""Estimators and releases of other packages: by module:Name, and by entry points."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import make_dataclass, replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

import ldpspatial as lp
from client_sdk import Collection, Grid
from ldpspatial.collecting.results import estimate_summary, read_estimate, write_npz
from ldpspatial.estimation.estimate import RULES, estimator_names
from ldpspatial.release.attack import attack
from ldpspatial.release.local import Dam
from ldpspatial.release.registry import find_releases
from tests.support import extensions
from tests.support.command_line import run, succeed
from tests.support.extensions import Nothing, Spoilt, Uniform
from tests.support.files import write_file

ROOT = Path(__file__).parents[2]
ESTIMATOR, RELEASE = "tests.support.extensions:Uniform", "tests.support.extensions:Nothing"
COLLECTION = Collection.create("square", Grid.plane(0, 0, 5, 5), 3.5)
CHANNEL = lp.StampChannel(COLLECTION.table)
COUNTS = np.round(1e3 * CHANNEL.forward(np.eye(5) / 5))
POINTS = "lat,lon\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(200))


Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """A function (group, name=place, ...): as if a package with these entry points is installed."""
    known: list[EntryPoint] = []

    def add(group: str, **places: str) -> None:
        known.extend(
            EntryPoint(name.replace("_", "-"), place, f"ldpspatial.{group}")
            for name, place in places.items()
        )

    monkeypatch.setattr(
        "ldpspatial.extensions.entry_points", lambda group: EntryPoints(known).select(group=group)
    )
    return add


@pytest.fixture
def registered(register: Register) -> None:
    """An estimator and a release."""
    register("estimators", uniform=ESTIMATOR)
    register("releases", nothing=RELEASE)


def test_an_estimator_of_another_package_is_one_like_ours() -> None:
    for rule in (Uniform(), ESTIMATOR):
        found = lp.estimate(CHANNEL, COUNTS, rule)
        assert (found.rule, found.facts, found.converged) == ("uniform", {}, True)
        assert lp.cell_intervals(found, method="posterior").method == "posterior"
        assert lp.goodness_of_fit(found).p_value > 0


@pytest.mark.usefixtures("registered")
def test_names_of_entry_points_are_known() -> None:
    assert lp.estimate(CHANNEL, COUNTS, "uniform").estimator == Uniform()
    assert list(lp.releases())[-1] == "nothing"
    assert find_releases("nothing") == {"nothing": Nothing()}


@pytest.fixture(params=["no.such.module:X", "tests.support.extensions:None_"])
def broken(request: pytest.FixtureRequest, register: Register) -> None:
    """A release and an estimator that cannot be loaded, beside ones that can."""
    for group, works in (("estimators", ESTIMATOR), ("releases", RELEASE)):
        register(group, broken=request.param, works=works)


@pytest.mark.usefixtures("broken")
def test_a_broken_entry_point_is_refused_where_it_is_asked_for_and_nowhere_else(
    tmp_path: Path,
) -> None:
    assert set(find_releases(["dam", "works"])) == {"dam", "works"}
    with pytest.raises(lp.InputError, match="release must be found at 'broken', which raises"):
        find_releases("broken")
    with pytest.warns(UserWarning, match="the release 'broken' is left out: release must be"):
        known = lp.releases()
    assert {"dam", "works"} <= set(known)
    assert "broken" not in known
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2, "--repeats", 1, "--jobs", 1)
    which = ("--release", "dam", "--release", "works", "--out", tmp_path / "curves")
    succeed("compare", points, *square, *which)
    succeed("audit", "works", "--epsilon", 1, "--cells", 2, "--runs", 50)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        listed = run("compare", "--list-releases")
    assert "works" in listed.stdout
    assert "broken" not in listed.stdout
    assert "Warning: the release 'broken' is left out" in listed.stderr
    assert lp.estimate(CHANNEL, COUNTS, "works").rule == "uniform"
    with pytest.raises(lp.InputError, match="rule must be found at 'broken', which raises"):
        lp.estimate(CHANNEL, COUNTS, "broken")


def test_a_name_of_ours_stays_ours_and_a_warning_says_so(register: Register) -> None:
    register("releases", dam=RELEASE)
    register("estimators", scaled=ESTIMATOR)
    with pytest.warns(UserWarning, match=r"the entry point 'dam' of ldpspatial\.releases is left"):
        assert find_releases("dam") == {"dam": Dam()}
    with pytest.warns(UserWarning, match="the entry point 'dam'"):
        assert lp.releases()["dam"] == Dam()
    with pytest.warns(UserWarning, match=r"the entry point 'scaled' of ldpspatial\.estimators"):
        assert estimator_names() == list(RULES)


@pytest.mark.parametrize(
    ("text", "raised"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("def", "SyntaxError: invalid syntax")],
)
def test_whatever_a_module_raises_is_told_in_a_line(
    text: str, raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path, "raising_module.py", text)
    monkeypatch.syspath_prepend(tmp_path)
    for call in (
        lambda: lp.estimate(CHANNEL, COUNTS, "raising_module:X"),
        lambda: find_releases("raising_module:X"),
    ):
        with pytest.raises(lp.InputError, match=f"at 'raising_module:X', which raises {raised}"):
            call()


@pytest.mark.usefixtures("registered")
def test_what_a_registered_estimator_wrote_is_read_as_its_own(tmp_path: Path) -> None:
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2)
    succeed("simulate", points, *square, "--rule", "uniform", "--out", tmp_path / "map")
    assert read_estimate(tmp_path / "map")[1].estimator == Uniform()


def replaced(**changes: object) -> lp.Estimate:
    return replace(Uniform().fit(CHANNEL, COUNTS), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("counts", 3, "must not have a field 'counts'"),
        ("n", 3, "must not have a field 'n'"),
        ("file", 3, "must not have a field 'file'"),
        ("level", 3, "must not have a field 'level'"),
        ("pair", (1, 2), "must hold numbers and texts, got"),
        ("nothing", None, "must hold numbers and texts, got None as 'nothing'"),
        ("huge", 1 << 70, "must hold numbers of 64 bits"),
    ],
)
def test_details_that_no_file_can_hold_are_refused_before_it_is_written(
    field: str, value: object, message: str, tmp_path: Path
) -> None:
    details = make_dataclass("Details", [(field, object)], frozen=True)(value)
    with pytest.raises(lp.InputError, match=f"estimate.details {message}"):
        write_npz(tmp_path / "a.npz", COLLECTION, replaced(details=details))
    with pytest.raises(lp.InputError, match=f"estimate.details {message}"):
        estimate_summary(COLLECTION, replaced(details=details))
    assert not list(tmp_path.iterdir())


def test_details_are_numbers_and_texts_of_any_name(tmp_path: Path) -> None:
    kinds = {"steps": np.int64(3), "width": float("inf"), "is_flat": np.bool_(True), "why": "so"}
    details = make_dataclass("Details", kinds)(*kinds.values())
    write_npz(tmp_path / "a.npz", COLLECTION, replaced(details=details))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as held:
        assert {name: held[name].item() for name in kinds} == kinds
    assert read_estimate(tmp_path / "a.npz")[1].rule == "uniform"
    told = json.loads(json.dumps(estimate_summary(COLLECTION, replaced(details=details))))
    found = {name: told["estimator"][name] for name in kinds}
    assert found == {"steps": 3, "width": "inf", "is_flat": True, "why": "so"}


@pytest.mark.parametrize("name", ["Choosy", "Plain"])
def test_an_estimator_with_choices_is_not_made_again_from_its_name(
    name: str, register: Register, tmp_path: Path
) -> None:
    register("estimators", uniform=f"tests.support.extensions:{name}")
    found = replaced(estimator=getattr(extensions, name)(strength=3.0))
    write_npz(tmp_path / "a.npz", COLLECTION, found)
    again = read_estimate(tmp_path / "a.npz")[1]
    assert (again.rule, again.estimator.kind) == ("uniform", "lost")


class NamedLikeOurs(Uniform):
    """An estimator with a name of ours, which finds no posterior."""

    name = "field"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 1}, "estimate.trace must hold 2 values, one more than iterations, got 1"),
        ({"log_likelihood": -1.0}, "estimate.trace must end at the log-likelihood"),
        ({"trace": ()}, "trace must be an array"),
        ({"trace": (np.nan,)}, "trace must hold numbers in"),
        ({"iterations": None}, "iterations must be a whole number"),
        ({"converged": "yes"}, "converged must be True or False"),
        ({"density": np.full((5, 5), 2 / 25)}, "density must sum to 1, got a sum of 2"),
        ({"counts": -COUNTS}, "counts must hold"),
        ({"details": {"a": 1}}, "details must be a dataclass"),
        ({"estimator": NamedLikeOurs()}, "estimate.details must be such that 'field'"),
    ],
    ids=lambda each: ", ".join(each) if isinstance(each, dict) else "",
)
def test_what_could_not_be_read_again_is_not_written(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(lp.InputError, match=message):
        write_npz(tmp_path / "a.npz", COLLECTION, replaced(**changes))
    assert not list(tmp_path.iterdir())


def test_the_command_line_takes_both(tmp_path: Path) -> None:
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2)
    succeed("simulate", points, *square, "--rule", ESTIMATOR, "--out", tmp_path / "map")
    summary = json.loads((tmp_path / "map" / "summary.json").read_text())
    assert summary["estimator"]["rule"] == "uniform"
    files = (tmp_path / "map" / "collection.json", tmp_path / "map" / "reports.parquet")
    succeed("estimate", *files, "--rule", ESTIMATOR, "--out", tmp_path / "again")
    more = ("--repeats", 1, "--jobs", 1, "--out", tmp_path / "curves")
    succeed("compare", points, *square, "--release", "dam", "--release", RELEASE, *more)
    assert RELEASE in (tmp_path / "curves" / "errors.csv").read_text()


def test_a_file_of_an_estimator_that_is_not_installed_is_read(tmp_path: Path) -> None:
    points = write_file(tmp_path, "points.csv", POINTS)
    square = ("--plane", "0,0,8", "--cells", 4, "--epsilon", 2)
    succeed("simulate", points, *square, "--rule", ESTIMATOR, "--out", tmp_path / "map")
    regions = write_file(tmp_path, "r.csv", "name,south,west,north,east\na,0,0,4,4\n")
    for method in ("auto", "fisher"):
        succeed("ranges", tmp_path / "map", regions, "--method", method)
    _, found = read_estimate(tmp_path / "map")
    with pytest.raises(lp.InputError, match="'uniform' cannot be made again from the name in a"):
        found.estimator.fit(found.channel, found.counts)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.support.extensions:None_", "rule must be found at"),
        ("no.such.module:Name", "rule must be found at"),
        (":", "rule must be found at"),
        ("tests.support.extensions:Nothing", "rule must lead to Estimator"),
        (
            "tests.support.extensions:Choosy",
            "a class that is made without arguments, got Choosy at .* missing .* 'strength'",
        ),
        (
            "nothing",
            "rule must be one of field, robust, map-alone, em, scaled, likelihood, published",
        ),
    ],
)
def test_what_leads_nowhere_is_refused(name: str, message: str) -> None:
    with pytest.raises(lp.InputError, match=message):
        lp.estimate(CHANNEL, COUNTS, name)


BROKEN = {
    "boom": ("x = 1 / 0", "rule must be found at 'boom:Name', which raises ZeroDivisionError: "),
    "syntax": ("def f(:", "rule must be found at 'syntax:Name', which raises SyntaxError: "),
    "abstract": (
        "from ldpspatial import Estimator\nclass Name(Estimator): pass",
        "rule must be an object, or a class that is made without arguments, got Name at",
    ),
    "number": ("Name = 3", "rule must lead to Estimator, got int at 'number:Name'"),
    "lambda_": ("def Name(): pass", "rule must lead to Estimator, got function at 'lambda_:Name'"),
}


@pytest.mark.parametrize("module", BROKEN)
def test_a_module_that_cannot_be_used_is_refused_with_its_reason(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, message = BROKEN[module]
    write_file(tmp_path, f"{module}.py", text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(lp.InputError, match=re.escape(message)):
        lp.estimate(CHANNEL, COUNTS, f"{module}:Name")


@pytest.mark.parametrize("name", ["tests.support.extensions:Uniform", "a:b", "unknown"])
def test_a_release_that_is_none_is_refused(name: str) -> None:
    grid = Grid.plane(0, 0, 8, 4)
    with pytest.raises(lp.InputError, match="release"):
        lp.compare(np.ones((5, 2)), grid, [1.0], [name], 1, np.random.default_rng(1))


SQUARE = ((0.25, 0.25), (0.25, 0.25))
SPOILT = {
    "density must hold numbers in [0, inf), got nan at [0, 0]": Spoilt(((float("nan"), 1.0),)),
    "density must sum to 1, got a sum of 2": Spoilt(((1.0, 1.0),)),
    "density of release nothing must have shape (3, 3), got (2, 2)": Spoilt(SQUARE),
    "epsilon must be a number in [0, inf], got -3": Spoilt(changes=(("epsilon", -3),)),
    "epsilon must be a number in [0, inf], got '1'": Spoilt(changes=(("epsilon", "1"),)),
    "delta must be a number in [0, 1], got 2": Spoilt(changes=(("delta", 2),)),
    "neighbours must be one of replace, zero,": Spoilt(changes=(("neighbours", "x"),)),
    "model must be one of local, distributed,": Spoilt(changes=(("model", "x"),)),
}


@pytest.mark.parametrize("rule", SPOILT)
def test_a_release_with_no_density_or_no_claim_gets_into_no_table(rule: str) -> None:
    """Before, epsilon -3 went into the curves, and neighbours "x" ended in a KeyError."""
    release = SPOILT[rule]
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 3, (20, 2))
    with pytest.raises(lp.InputError, match=re.escape(rule)) as caught:
        lp.compare(points, Grid.plane(0, 0, 3, 3), [1.0], [release], 1, rng, metrics=["l1"])
    # A claim is asked for before any run, a density comes of one.
    assert re.match("nothing at epsilon 1(, 3 cells, repeat 0)?: ", str(caught.value))
    with pytest.raises(lp.InputError, match=re.escape(rule)):
        attack(release, 1.0, 3, 4, rng)


def test_the_installed_command_finds_a_module_in_the_folder_where_it_is_called(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text("from tests.support.extensions import Nothing as Coarse\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('hides the one that is meant')\n")
    # As the script of an installed package: its own folder comes first, and not that of the user.
    call = f"import sys; sys.path[0] = {str(ROOT)!r}; from ldpspatial.cli import main; main()"
    words = ["audit", "mine:Coarse", "--epsilon", "1", "--cells", "2", "--runs", "4"]
    done = subprocess.run(
        [sys.executable, "-c", call, *words],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        # With a "." in it Python looks in the folder first, which is what its user asked for.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert "mine:Coarse on 2 x 2 cells" in done.stdout, done.stderr


def test_what_is_no_release_of_anything_is_refused() -> None:
    class NoMap(Nothing):
        def release(self, *_: object) -> None:  # type: ignore[override]
            """Return nothing at all."""

    class NoClaim(Nothing):
        def claim(self, epsilon: float) -> None:  # type: ignore[override]
            """Return nothing at all."""

    rng = np.random.default_rng(1)
    with pytest.raises(lp.InputError, match="what release nothing returns must be a Released"):
        NoMap().run([[0.5, 0.5]], Grid.plane(0, 0, 3, 3), 1.0, rng)
    with pytest.raises(lp.InputError, match="claim of release nothing must be a PrivacyClaim"):
        attack(NoClaim(), 1.0, 3, 4, rng)
