import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import ROOT, node_of, prefix_of, quadrants
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.prefix_tree import FORMAT, PrefixTree
from tests.support import naive_prefix_tree as naive

shapes = st.tuples(st.integers(1, 11), st.integers(1, 11))
steps = st.lists(st.tuples(st.booleans(), st.integers(0, 999)), max_size=14)


def grown(shape: tuple[int, int], moves: list[tuple[bool, int]]) -> tuple[PrefixTree, set[str]]:
    """Splits and collapses of elements picked by number, on the tree and on its twin."""
    tree = PrefixTree.quadrants(shape)
    twin = naive.split({""}, "", shape) if max(shape) > 1 else {""}
    for splits, number in moves:
        node = tree.elements[number % len(tree)]
        if not splits:
            tree, twin = tree.collapse([node]), naive.collapse(twin, prefix_of(node))
        elif node[0] < tree.depth:
            tree, twin = tree.split([node]), naive.split(twin, prefix_of(node), shape)
    return tree, twin


@settings(max_examples=150)
@given(shapes, steps)
def test_every_pixel_has_one_element_as_the_twin_says(
    shape: tuple[int, int], moves: list[tuple[bool, int]]
) -> None:
    tree, twin = grown(shape, moves)
    assert {prefix_of(node) for node in tree.nodes} | {""} == twin
    prefixes = [prefix_of(node) for node in tree.elements]
    found = [prefixes[label] for label in tree.assign(np.arange(shape[0] * shape[1]))]
    assert found == list(naive.cover(twin, shape).values())
    assert dict(zip(prefixes, tree.areas.tolist(), strict=True)) == naive.areas(twin, shape)
    assert tree.areas.sum() == shape[0] * shape[1]
    assert tree.areas.min() >= 1
    assert list(tree.elements) == sorted(set(tree.elements))


@settings(max_examples=60)
@given(shapes, steps, st.integers(0, 2**32 - 1))
def test_density_spreads_each_count_over_its_own_pixels(
    shape: tuple[int, int], moves: list[tuple[bool, int]], seed: int
) -> None:
    tree, twin = grown(shape, moves)
    counts = np.random.default_rng(seed).integers(-3, 9, len(tree))
    by_prefix = dict(zip(map(prefix_of, tree.elements), counts.tolist(), strict=True))
    density = tree.density(counts)
    expected = list(naive.density(twin, by_prefix, shape).values())
    np.testing.assert_allclose(density.ravel(), expected, rtol=1e-12)
    assert density.shape == shape
    assert density.min() >= 0
    assert density.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=40)
@given(shapes, steps)
def test_text_brings_the_tree_back(shape: tuple[int, int], moves: list[tuple[bool, int]]) -> None:
    tree, _ = grown(shape, moves)
    again = PrefixTree.from_json(tree.to_json())
    assert again == tree
    assert again.to_json() == tree.to_json()


def test_prefixes_of_the_paper_name_the_pixel() -> None:
    # Section 5.6: x = 12 = 1100, y = 5 = 0101 on 16 x 16; the first digit joins the first bits.
    assert prefix_of((4, 12, 5)) == "2301"  # 1|0, 1|1, 0|0, 0|1
    assert node_of("2301") == (4, 12, 5)
    assert naive.path(12, 5, 4) == "2301"
    assert prefix_of(ROOT) == ""


def test_quadrants_outside_the_map_are_never_made() -> None:
    wide = PrefixTree.quadrants((3, 9))  # in the 16 x 16 square
    assert wide.elements == ((1, 0, 0), (1, 0, 1))
    assert wide.areas.tolist() == [24, 3]
    assert wide.split([(1, 0, 1)]).elements == ((1, 0, 0), (2, 0, 2))
    assert PrefixTree.quadrants((1, 1)).elements == (ROOT,)


def test_a_node_whose_region_is_taken_by_others_has_no_element() -> None:
    tree = PrefixTree.quadrants((8, 8)).split([(1, 0, 0)])
    assert (1, 0, 0) not in tree.elements
    assert len(tree) == 7
    partial = tree.collapse([(2, 0, 0)])
    assert (1, 0, 0) in partial.elements  # three children: a partial node
    assert len(partial) == 7
    orphans = partial.collapse([(1, 0, 0)])
    assert orphans.elements[0] == ROOT  # its other children stay, and their people with them
    assert dict(zip(orphans.elements, orphans.areas.tolist(), strict=True))[ROOT] == 4
    covered = partial.split([(1, 0, 0)])
    assert covered == tree  # only the missing child is made


def test_a_child_covered_by_orphans_takes_no_element() -> None:
    orphans = PrefixTree((8, 8), frozenset(quadrants((2, 0, 0))))
    assert orphans.elements == (ROOT, *quadrants((2, 0, 0)))
    assert orphans.areas.tolist() == [60, 1, 1, 1, 1]
    inner = PrefixTree((8, 8), orphans.nodes | {(2, 0, 0)})
    assert inner.elements == orphans.elements


def test_the_root_is_never_lost() -> None:
    tree = PrefixTree.quadrants((5, 5))
    empty = tree.collapse(tree.elements)
    assert empty.elements == (ROOT,)
    assert empty.collapse([ROOT]) == empty
    assert empty.density([-4.0]).tolist() == np.full((5, 5), 0.04).tolist()


def test_counts_without_anything_positive_give_the_uniform_map() -> None:
    tree = PrefixTree.quadrants((3, 5))
    np.testing.assert_allclose(tree.density(np.full(len(tree), -1)), 1 / 15)


def test_a_prior_splits_what_is_heavy() -> None:
    density = np.zeros((6, 6))
    density[0, 0], density[5, 5] = 3, 1
    tree = PrefixTree.from_density(density, share=0.3)
    assert tree.elements[-4:] == tuple(quadrants((2, 0, 0)))
    assert (1, 1, 1) in tree.elements  # a quarter of the mass: not split
    assert len(tree) == 3 + 3 + 4
    assert PrefixTree.from_density(density, share=0.3, depth=1) == PrefixTree.quadrants((6, 6))
    assert PrefixTree.from_density([[2.0]], share=0.5).elements == (ROOT,)


def test_a_density_whose_sums_round_gives_a_tree() -> None:
    # A square's sum may exceed that of its parent, which has nothing else, by rounding, and the
    # share lie between them: one in ten of these maps.
    rng = np.random.default_rng(3)
    for _ in range(100):
        density = np.zeros((16, 16))
        density[:4, :4] = rng.random((4, 4))
        density[8:, 8:] = rng.random((8, 8))
        quadrants = (density / density.sum()).reshape(2, 8, 2, 8).sum(axis=(1, 3))
        tree = PrefixTree.from_density(density, share=float(quadrants[0, 0]))
        assert (2, 0, 0) not in tree.nodes


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ("{", "JSON document"),
        ("[" * 10_000, "JSON document"),
        ("[]", f"the format {FORMAT!r}"),
        ({"format": "other"}, "the format"),
        ({"format": FORMAT, "shape": [4], "nodes": []}, "two whole numbers"),
        ({"format": FORMAT, "shape": [4, True], "nodes": []}, "two whole numbers"),
        ({"format": FORMAT, "shape": [4, 0], "nodes": []}, "shape must be two whole numbers"),
        ({"format": FORMAT, "shape": [4, 4], "nodes": "0"}, "digits 0 to 3"),
        ({"format": FORMAT, "shape": [4, 4], "nodes": ["4"]}, "digits 0 to 3"),
        ({"format": FORMAT, "shape": [4, 4], "nodes": [1]}, "digits 0 to 3"),
        ({"format": FORMAT, "shape": [4, 4], "nodes": [""]}, "below the root"),
        ({"format": FORMAT, "shape": [4, 4], "nodes": ["000"]}, "inside the map"),
        ({"format": FORMAT, "shape": [3, 3], "nodes": ["33"]}, "inside the map"),
    ],
)
def test_text_that_is_no_tree_is_refused(document: object, rule: str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(InputError, match=re.escape(rule)):
        PrefixTree.from_json(text)


def test_bad_arguments_are_refused() -> None:
    tree = PrefixTree.quadrants((4, 4))
    with pytest.raises(InputError, match="shape must lie in"):
        PrefixTree((16_385, 1))
    with pytest.raises(InputError, match="nodes must be in the tree"):
        tree.split([(2, 0, 0)])
    with pytest.raises(InputError, match="nodes must be in the tree"):
        tree.collapse([(2, 0, 0)])
    with pytest.raises(InputError, match="a pixel cannot be split"):
        tree.split([(1, 0, 0)]).split([(2, 0, 0)])
    with pytest.raises(InputError, match="a pixel cannot be split"):
        PrefixTree((1, 1)).split([ROOT])
    for cells in ([16], [-1]):
        with pytest.raises(InputError, match=r"cells must lie in \[0, 16\) \(not repeated here\)"):
            tree.assign(cells)
    with pytest.raises(InputError, match="cells must be an array of whole numbers"):
        tree.assign([0.5])
    with pytest.raises(InputError, match=r"counts must .* of shape \(4,\), got int64 of shape"):
        tree.density([1, 2, 3])
    with pytest.raises(InputError, match="counts must hold finite numbers, got nan"):
        tree.density([1, 2, 3, np.nan])


@pytest.mark.parametrize("text", [None, 5, [], "{", "[]", '{"format": "other"}'])
def test_what_is_no_document_of_a_tree_is_refused_and_its_text_is_no_tree(text: Any) -> None:
    with pytest.raises(InputError, match="a prefix tree must"):
        PrefixTree.from_json(text)
    with pytest.raises(InputError, match="start must be a PrefixTree, got str"):
        AdaptiveHierarchical(start=PrefixTree.quadrants((4, 4)).to_json())  # type: ignore[arg-type]
