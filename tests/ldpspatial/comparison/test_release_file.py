"""Releases to compare from a file."""

import json
from pathlib import Path

import pytest

from ldpspatial.comparison.release_file import read_releases
from ldpspatial.errors import InputError
from ldpspatial.release.central import SparseEmd
from ldpspatial.release.distributed import AdaptiveHierarchical
from ldpspatial.release.local import Dam, KRr, Matched, Recommended, SemGeoI


def test_texts_and_objects_name_releases(tmp_path: Path) -> None:
    file = tmp_path / "releases.json"
    file.write_text(json.dumps([
        "recommended",
        "sparse-emd:keep=200",
        {"release": "sparse-emd", "w": 7},
        {"release": "recommended", "rule": "em", "n_users": None},
        {"release": "adaptive-hierarchical", "calibration": 1, "label": "adaptive, c = 1"},
        "matched:inner=sem-geo-i,to=dam,cells=8",
        {"release": "matched", "inner": "k-rr", "to": "dam", "cells": 8, "label": "k-rr as dam"},
        {"release": "dam", "radius": 2, "label": "dam:b=2"},
        {"release": "dam", "radius": 3, "label": "dam: a wider disk"},
    ]))  # fmt: skip
    found = read_releases(file)
    assert found == {
        "recommended": Recommended(),
        "sparse-emd:keep=200": SparseEmd(keep=200),
        "sparse-emd:w=7": SparseEmd(keep=7),
        "recommended:rule=em": Recommended(rule="em"),
        "adaptive, c = 1": AdaptiveHierarchical(calibration=1.0),
        "sem-geo-i matched to dam": Matched(SemGeoI(), Dam(), 8),
        "k-rr as dam": Matched(KRr(), Dam(), 8),
        "dam:b=2": Dam(radius=2),
        "dam: a wider disk": Dam(radius=3),
    }
    assert repr(found["adaptive, c = 1"]) == repr(AdaptiveHierarchical(calibration=1.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "releases.json must be JSON"),
        ("{}", "must hold a list of releases, got"),
        ("[]", "must hold a list of releases, got an empty one"),
        ("[3]", "entry 1 of .* a release must be a text or an object with 'release', got 3"),
        ('[{"keep": 3}]', "entry 1 of .* an object with 'release'"),
        (
            '["dam", {"release": "sparse-emd", "keep": 0}]',
            "entry 2 of .*: release sparse-emd: keep",
        ),
        ('[{"release": "sparse-emd", "keep": "3"}]', "keep must be a whole number, got '3'"),
        ('[{"release": "sparse-emd", "keep": true}]', "keep must be a whole number, got True"),
        ('[{"release": "dam", "label": 3}]', "label must be a text, got 3"),
        ('[{"release": "dam", "label": "two\\nlines"}]', "100 characters of one line of a table"),
        (
            '[{"release": "dam", "label": "laplace "}]',
            "with no blank at either end, got 'laplace '",
        ),
        ('[{"release": "dam", "label": "' + 101 * "x" + '"}]', "label must be at most 100"),
        (
            '["sparse-emd:w=3", {"release": "sparse-emd", "keep": 3}]',
            "entry 2 .* must be another release, but 'sparse-emd:w=3' and 'sparse-emd:keep=3' are",
        ),
        (
            '[{"release": "dam", "radius": 2, "label": "dam"}]',
            "label must not be what another release is called, got 'dam'",
        ),
        (
            '[{"release": "dam", "label": "matched:inner=none:There,to=dam,cells=8"}]',
            "label must not be what another release is called, got 'matched:inner=none:There,",
        ),
        (
            '[{"release": "dam", "label": "central-levels"}]',
            "label must not be what another release is called, got 'central-levels'",
        ),
        (
            '[{"release": "dam", "label": "sparse-emd:keep=3"}]',
            "label must not be what another release is called, got 'sparse-emd:keep=3'",
        ),
        (
            '[{"release": "dam", "radius": 2, "label": "dam:radius=3"}]',
            "label must not be what another release is called, got 'dam:radius=3'",
        ),
        ('["dam", "dam"]', "entry 2 of .* must have another label, got 'dam' again"),
        ('[{"release": "dam", "radius": 2, "radius": 3}]', "an object has a field twice"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "releases.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_releases(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_releases(tmp_path / "none.json")
