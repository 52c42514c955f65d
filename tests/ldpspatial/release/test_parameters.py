"""Parameters of releases by name: what can be set, how it is read, how labels tell it."""

from dataclasses import replace

import pytest

from ldpspatial.errors import InputError
from ldpspatial.release.central import SparseEmd
from ldpspatial.release.distributed import AdaptiveHierarchical, Cohort
from ldpspatial.release.local import Dam, DiskAndSets, Matched, SemGeoI
from ldpspatial.release.parameters import described, label_of, parameters
from ldpspatial.release.registry import find_releases, releases


@pytest.mark.parametrize("name", list(releases()))
def test_what_is_told_of_a_release_is_read_again(name: str) -> None:
    """Each parameter, written with its value, gives the same release; nothing is told of it."""
    release = releases()[name]
    assert label_of(release) == name
    for parameter in parameters(release).values():
        assert find_releases([f"{name}:{parameter.written()}"]) == {name: release}


@pytest.mark.parametrize(
    ("text", "label", "release"),
    [
        ("sparse-emd:nodes=200", "sparse-emd:nodes=200", SparseEmd(keep=200)),
        ("sparse-emd:w=7, decay=0.5", "sparse-emd:w=7,decay=0.5", SparseEmd(7, 0.5)),
        (
            "adaptive-hierarchical:c=1,shard_size=1000,threshold=10",
            "adaptive-hierarchical:c=1,threshold=10,shard_size=1000",
            AdaptiveHierarchical(
                Cohort(1000, drop_out=0.1, tolerated=0.2, colluding=0.1), 1.0, threshold=10.0
            ),
        ),
        ("dam:estimator=field,radius=2", "dam:estimator=field,radius=2", Dam("field", 2)),
        ("dam:radius=none", "dam", Dam()),
        (
            "dam:rule=tests.support.extensions:Uniform",
            "dam:rule=tests.support.extensions:Uniform",
            Dam("tests.support.extensions:Uniform"),
        ),
    ],
)
def test_parameters_are_read_and_labels_say_them(text: str, label: str, release: object) -> None:
    assert find_releases([text]) == {label: release}
    assert find_releases([label]) == {label: release}
    asked = [part.partition("=")[0].strip() for part in text.partition(":")[2].split(",")]
    assert label_of(release, asked=asked) == label


def test_one_release_by_two_names_of_its_parameter_is_refused() -> None:
    with pytest.raises(InputError, match="'dam:rule=field' and 'dam:estimator=field' are one"):
        find_releases(["dam:rule=field", "dam:estimator=field"])


def test_a_release_with_a_label_of_its_own_keeps_it() -> None:
    assert label_of(Matched(SemGeoI(), Dam(), 8)) == "sem-geo-i matched to dam"


def test_a_release_matched_to_another_is_named() -> None:
    found = find_releases(["matched:inner=sem-geo-i,to=dam,cells=8", "dam"])
    assert found == {"sem-geo-i matched to dam": Matched(SemGeoI(), Dam(), 8), "dam": Dam()}
    found = find_releases(["matched:inner=sem-geo-i:size=2,to=dam,cells=8"])
    assert list(found) == ["sem-geo-i:size=2 matched to dam"]
    with pytest.raises(InputError, match="different labels"):
        find_releases([Matched(SemGeoI(), Dam(), 8), "matched:inner=sem-geo-i,to=dam,cells=9"])


def test_a_disk_with_sets_is_found_by_the_name_that_tables_give_it() -> None:
    chosen = DiskAndSets.chosen(64, 3.5, 3000)
    for release in (chosen, replace(chosen, sets="difference-sets", rule="em")):
        assert find_releases([label_of(release)]) == {label_of(release): release}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("matched", "release matched: inner and to and cells must be given, as in matched:inner="),
        ("matched:inner=dam,to=dam", "release matched: cells must be given"),
        ("matched:inner=dam,to=dam,cells=no", "cells must be a whole number, got 'no'"),
        ("matched:inner=dam,to=dam,cells=0", "release matched: cells must"),
        ("matched:inner=dam,to=dam,to=huem,cells=3", "to must be given once"),
        ("matched:inner=dam,to=none such,cells=3", "release matched: releases must be of"),
        ("matched:inner=laplace,to=dam,cells=3", "release matched: inner must be"),
        ("matched:inner=dam,to=dam,cells=3,w=3", "parameters must be of inner, to, cells, got 'w'"),
        ("matched:inner=dam,to=recommended,cells=3", "without n_users: say how many are expected"),
        ("disk-and-sets", "disk-and-sets: share and squared_radius must be given, as in disk-and-"),
        ("disk-and-sets:share=.5", "release disk-and-sets: squared_radius must be given"),
        ("disk-and-sets:share=2,squared_radius=4", "release disk-and-sets: share must be"),
        ("disk-and-sets:share=.5,squared_radius=4,share=.6", "share must be given once"),
        ("disk-and-sets:share=.5,squared_radius=4,sets=olh", "release disk-and-sets: sets must be"),
    ],
)
def test_a_release_of_others_or_of_numbers_is_named_wholly(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_releases([text])


def test_settings_of_one_release_stand_side_by_side() -> None:
    wanted = ["sparse-emd", SparseEmd(keep=200), "sparse-emd:w=3"]
    assert list(find_releases(wanted)) == ["sparse-emd", "sparse-emd:keep=200", "sparse-emd:w=3"]
    with pytest.raises(InputError, match="different labels, got 'sparse-emd' twice"):
        find_releases(["sparse-emd", "sparse-emd:keep=20"])


def test_the_list_says_what_else_a_parameter_is_called() -> None:
    assert described(SparseEmd()) == "keep=20 (or w=), decay=0.7071067811865475"
    assert (
        described(releases()["k-rr"]) == "rule=scaled, estimator=em"
    )  # whose estimator is another field
    assert described(releases()["laplace"]) == ""
    assert described(releases()["dam"]) == "rule=scaled (or estimator=), radius=none (or b=)"


def test_a_letter_means_what_the_paper_of_a_release_means_by_it() -> None:
    """b is the radius of DAM, and by how much an adaptive histogram expands."""
    found = find_releases(["dam:b=3", "adaptive-hierarchical:b=3"])
    assert list(found) == ["dam:b=3", "adaptive-hierarchical:b=3"]
    expansion, radius = (label_of(found[each]) for each in ("adaptive-hierarchical:b=3", "dam:b=3"))
    assert (radius, expansion) == ("dam:radius=3", "adaptive-hierarchical:expansion=3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sparse-emd:keep=0", "release sparse-emd: keep must be a whole number from 1 to 65536, "
         "got 0"),
        ("sparse-emd:keep=2.5", "release sparse-emd: keep must be a whole number, got '2.5'"),
        ("sparse-emd:keep=none", "release sparse-emd: keep must be a whole number, got 'none'"),
        ("sparse-emd:kept=2", "release sparse-emd: parameters must be of keep (or w), decay, "
         "got 'kept'"),
        ("sparse-emd:w=2,keep=2", "release sparse-emd: keep must be given once, got it twice "
         "(w stands for keep)"),
        ("sparse-emd:w=2,", "release sparse-emd: parameters must be name=value, got ''"),
        ("sparse-emd:keep", "release sparse-emd: parameters must be name=value, got 'keep'"),
        ("sparse-emd:", "release sparse-emd: parameters must be name=value, got ''"),
        ("sparse-emd:w=0", "release sparse-emd: keep must be a whole number from 1 to 65536, "
         "got 0 (w stands for keep)"),
        ("sparse-emd=2", "releases must be written name:parameter=value, got 'sparse-emd=2'"),
        ("laplace:c=1", "release laplace: it has no parameters, got 'c'"),
        ("mdsw:smoothing=1", "release mdsw: smoothing must be true or false, got '1'"),
        (
            "adaptive-hierarchical:schedule=odd",
            "release adaptive-hierarchical: schedule must be scheduled or even, got 'odd'",
        ),
        (
            "flat:tolerated=.5,colluding=.5",
            "release flat: tolerated + colluding must be below 1, got 0.5 + 0.5",
        ),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_named_with_its_release_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        find_releases([text])
    assert str(refused.value) == message
