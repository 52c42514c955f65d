"""The spanning tree of a network simplex, and the pivot that improves it.

An uncapacitated minimum-cost flow has an optimal solution whose arcs form a spanning tree. One
pivot adds an arc of negative reduced cost, sends flow around the cycle that it closes until an arc
of the tree runs empty, and drops that arc. Which arc to add is the caller's business
(`multiscale.py`).

Costs, flows and potentials are whole numbers. The guard against cycling is the perturbation of
the supplies by infinitesimals (Charnes 1952): each flow has a second part, its `tie`, in units of
an infinitesimal, and flows compare by (flow, tie). Sources are given a tie of 1 each, one target
takes them all; then no part of a tree balances, no flow on a tree arc is ever 0, and every pivot
lowers the cost. Unlike the rule of strongly feasible trees (Cunningham 1976) this one does not
depend on the root, so each pivot may move whichever side of the tree is the smaller.

The tree is kept as in the thread index of Glover, Klingman and Stutz (1974) with the subtree sizes
and last descendants of Kiraly and Kovacs, Acta Univ. Sapientiae Informatica 4(1), 2012, section 4.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ldpspatial.compiled import compiled

Ints: TypeAlias = npt.NDArray[np.int64]
NodeIds: TypeAlias = npt.NDArray[np.int32]

POTENTIAL_LIMIT = 2**61
"""Bound on the potential of the node that a pivot moves by.

Costs times nodes are at most 2^60 (`ground_costs.py`), so all others lie within 2^60 of it, and
every sum of a cost and two potentials fits in 64 bits.
"""

# What a pivot reads of a node lies together in memory; `flow`, `tie` and `upward` belong to the arc
# between the node and its parent. A subtree is the piece from the node to `last` of the thread.
NODE = np.dtype(
    [
        ("flow", np.int64),
        ("tie", np.int32),
        ("parent", np.int32),  # -1 at the root
        ("size", np.int32),  # nodes in the subtree
        ("last", np.int32),
        ("before", np.int32),  # the node that the thread comes from
        ("upward", np.int32),  # 1 if the arc points to the parent, 0 if it comes from there
    ],
    align=True,
)


class Tree(NamedTuple):
    """A spanning tree of n nodes with its flow and its potentials.

    ``thread`` (n,) is the next node in depth-first order, in a circle. On every arc of the tree
    cost + potential[tail] - potential[head] is 0.
    """

    node: npt.NDArray[Any]
    thread: NodeIds
    potential: Ints


@compiled
def plant(
    tails: Ints, heads: Ints, flow: Ints, tie: Ints, cost: Ints
) -> tuple[npt.NDArray[Any], NodeIds, Ints, Ints]:
    """Return the tree with these arcs, its nodes numbered anew, and the old number of each node.

    Neighbours in the tree become neighbours in memory: the new numbers are in depth-first order.
    """
    arcs = len(tails)
    n = arcs + 1
    begin, arcs_at = _arcs_by_node(tails, heads)
    node = np.empty(n, NODE)
    potential = np.zeros(n, np.int64)
    thread = np.empty(n, np.int32)
    old = np.empty(n, np.int64)
    waiting = np.empty((n, 2), np.int64)  # a stack of (arc to the parent, parent's new number)
    waiting[0] = -1
    height = 1
    number = 0
    v = 0
    while height > 0:
        height -= 1
        arc, parent = waiting[height]
        node[number].parent = parent
        node[number].size = 1
        node[number].flow = node[number].tie = node[number].upward = 0
        if arc >= 0:
            upward = heads[arc] == old[parent]
            v = tails[arc] if upward else heads[arc]
            node[number].upward = upward
            node[number].flow = flow[arc]
            node[number].tie = tie[arc]
            # It makes cost + potential[tail] - potential[head] of the arc 0.
            potential[number] = potential[parent] + (-cost[arc] if upward else cost[arc])
        old[number] = v
        for k in range(begin[v], begin[v + 1]):
            if arcs_at[k] != arc:
                waiting[height, 0], waiting[height, 1] = arcs_at[k], number
                height += 1
        number += 1
    # Children have larger numbers than their parents: a size is complete when it is added on.
    for v in range(n - 1, -1, -1):
        node[v].last = v + node[v].size - 1
        node[v].before = (v - 1) % n
        thread[v] = (v + 1) % n
        if v > 0:
            node[node[v].parent].size += node[v].size
    return node, thread, potential, old


@compiled
def _arcs_by_node(tails: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Return arcs ordered by node, and where those of node v begin; they end where v + 1 begins."""
    arcs = len(tails)
    # Counted two places on: begin[v + 1] starts where v begins, and filling moves it to its end.
    begin = np.zeros(arcs + 3, np.int64)
    for arc in range(arcs):
        begin[tails[arc] + 2] += 1
        begin[heads[arc] + 2] += 1
    for v in range(2, arcs + 3):
        begin[v] += begin[v - 1]
    ordered = np.empty(2 * arcs, np.int64)
    for arc in range(arcs):
        for v in (tails[arc], heads[arc]):
            ordered[begin[v + 1]] = arc
            begin[v + 1] += 1
    return begin, ordered


@compiled
def improve(tree: Tree, tails: NodeIds, heads: NodeIds, cost: Ints) -> int:
    """Add each arc in turn whose reduced cost is still negative; return how many were added.

    -1 if a potential would leave the safe range: the costs are too large for the network. The tree
    is of no use then.
    """
    node, thread, potential = tree
    added = 0
    for k in range(len(tails)):
        tail = tails[k]
        head = heads[k]
        # Priced before the pivots of this round, which may have moved either potential.
        reduced = cost[k] + potential[tail] - potential[head]
        if reduced >= 0:
            continue
        apex, leaving, on_tail_side = _leaving_arc(node, tail, head)
        flow = node[leaving].flow
        tie = node[leaving].tie
        _push(node, tail, head, apex, flow, tie)
        # The side of the tree below the leaving arc hangs on to the entering one by `moving`.
        # The shift of its potentials makes the reduced cost of the entering arc 0.
        moving, fixed, shift = (tail, head, -reduced) if on_tail_side else (head, tail, reduced)
        upward = np.int32(on_tail_side)
        moved = node[leaving].size
        if 2 * moved <= len(node):
            _cut(node, thread, leaving)
            _resize(node, node[leaving].parent, apex, -moved)
            _resize(node, fixed, apex, moved)
            _hang(node, thread, moving, leaving, fixed, flow, tie, upward, moved)
        else:  # move the other side, which holds the root, and make `leaving` the root
            moved = len(node) - moved
            root = _uproot(node, thread, leaving)
            _resize(node, moving, -1, moved)
            moving, fixed, shift = fixed, moving, -shift
            _hang(node, thread, moving, root, fixed, flow, tie, 1 - upward, moved)
        if abs(potential[moving] + shift) > POTENTIAL_LIMIT:
            return -1
        v = moving
        for _ in range(moved):
            potential[v] += shift
            v = thread[v]
        added += 1
    return added


@compiled
def _leaving_arc(node: Any, tail: int, head: int) -> tuple[int, int, bool]:
    """Return the top of the cycle, the node below its emptiest backward arc, and its side."""
    leaving = -1
    on_tail_side = False
    flow = np.int64(0)
    tie = np.int32(0)
    x, y = tail, head
    while x != y:
        at_tail = node[x].size <= node[y].size  # the smaller subtree cannot hold the other node
        v = x if at_tail else y
        # Flow goes round from tail to head, then up from the head and down to the tail.
        backward = node[v].upward == at_tail
        # No two are equal, or the pivot would leave an arc of the tree with a flow of 0.
        if backward and (
            leaving < 0 or node[v].flow < flow or (node[v].flow == flow and node[v].tie < tie)
        ):
            leaving = v
            on_tail_side = at_tail
            flow = node[v].flow
            tie = node[v].tie
        if at_tail:
            x = node[v].parent
        else:
            y = node[v].parent
    return x, leaving, on_tail_side


@compiled
def _push(node: Any, tail: int, head: int, apex: int, flow: int, tie: int) -> None:
    for end, with_flow in ((tail, 0), (head, 1)):
        v = end
        while v != apex:
            # The cycle comes down to the tail and goes up from the head; arcs against it lose flow.
            sign = 1 if node[v].upward == with_flow else -1
            node[v].flow += sign * flow
            node[v].tie += sign * tie
            v = node[v].parent


@compiled
def _resize(node: Any, begin: int, end: int, change: int) -> None:
    """Change the sizes on the path from `begin` up to, but without, `end`."""
    v = begin
    while v != end:
        node[v].size += change
        v = node[v].parent


@compiled
def _cut(node: Any, thread: NodeIds, v: int) -> None:
    """Take the subtree of v out of the thread and of the `last` of all above it."""
    last = node[v].last
    before = node[v].before
    after = thread[last]
    thread[before], node[after].before = after, before
    w = node[v].parent
    while w >= 0 and node[w].last == last:
        node[w].last = before
        w = node[w].parent


@compiled
def _uproot(node: Any, thread: NodeIds, leaving: int) -> int:
    """Make the subtree of `leaving` a tree of its own; return the root of the rest."""
    _cut(node, thread, leaving)
    size = node[leaving].size
    root: int = node[leaving].parent
    v = root
    while v >= 0:
        node[v].size -= size
        root = v
        v = node[v].parent
    node[leaving].parent = -1
    last = node[leaving].last
    # The thread of each tree is a circle of its own.
    thread[last], node[leaving].before = leaving, last
    return root


@compiled
def _hang(
    node: Any,
    thread: NodeIds,
    moving: int,
    top: int,
    below: int,
    flow: int,
    tie: int,
    upward: int,
    size: int,
) -> None:
    """Turn the tree under `top` so that `moving` is its root, and hang it below another node.

    Arc by arc, the path from `moving` to `top` is reversed. In the thread, each node of the path
    comes after the one before it with what is left of its subtree: the pieces ahead of that child
    and behind it.
    """
    v, parent = moving, below
    end = node[v].last  # of the new thread so far
    first, last = node[v].before, node[v].last  # bounds of the child's piece in the old thread
    after = thread[last]
    while True:
        above = node[v].parent
        above_flow = node[v].flow
        above_tie = node[v].tie
        above_upward = 1 - node[v].upward
        old_size = node[v].size
        node[v].parent = parent
        node[v].size = size
        node[v].upward = upward
        node[v].flow, node[v].tie = flow, tie
        if v == top:
            break
        thread[end] = above
        ahead = node[above].before
        node[above].before = end
        end = first
        if node[above].last != last:
            thread[end], node[after].before = after, end
            end = last = node[above].last
            after = thread[last]
        first = ahead
        # Once turned, `above` has all but what hung below v; `moving` has the whole.
        size = node[moving].size - old_size
        parent, v = v, above
        flow = above_flow
        tie = above_tie
        upward = above_upward
    v = top
    while v != below:
        node[v].last = end
        v = node[v].parent
    after = thread[below]
    thread[below], node[moving].before = moving, below
    thread[end], node[after].before = after, end
    v = below
    # The piece follows `below` in the thread, so subtrees that ended there end with it now.
    while v >= 0 and node[v].last == below:
        node[v].last = end
        v = node[v].parent
