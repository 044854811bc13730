"""Place each spin in the chain that holds the frontier; this uses the graph only, not the weights.

Spins arrive one after the other. The *frontier* is the set of spins that have arrived and have neighbors still to come;
its spins are the sites of a chain. An arriving spin takes the site of a neighbor that has no neighbors left to come, or
a new site. A spin with no neighbors left to come is summed out. A step changes the sites between the farthest neighbors
of the spin, its *span*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled_in_place, inlined

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, RecordArray


STEP = np.dtype(
    [
        (name, np.int64)
        for name in ("spin", "place", "is_new", "taken", "low", "high", "is_gone", "goes_up", "start", "end")
    ],
    align=True,
)
NEAR = np.dtype([(name, np.int64) for name in ("slot", "place", "is_gone")], align=True)
# What is known of a spin, and of a site, while the chain is laid out.
SPIN = np.dtype(
    [("across", np.float64), *((name, np.int64) for name in ("position", "to_come", "has_arrived"))], align=True
)
SITE = np.dtype([("bond", np.float64), ("fresh", np.float64), ("is_gone", np.int64)], align=True)


class Steps(NamedTuple):
    """The step for each spin, in the order of arrival, and the neighbors that it meets.

    Positions are those in the chain after the spin has been given its site, and before others are summed out.

    Attributes
    ----------
    step
        ``spin``: the spin that arrives. ``place``, ``is_new``: its position, and whether the site is new; otherwise it
        is the site of a neighbor, which is summed out. ``taken``: the slot (of the graph) of the edge to that neighbor,
        or -1. ``low``, ``high``: first and last position of the span. ``is_gone``: whether the spin has no neighbors
        left to come, and is summed out at once. ``goes_up``: whether the chain's center is left at the upper end of the
        span, where the next step is nearer. ``start``, ``end``: its other neighbors that have arrived, in ``near``.
    near
        ``slot``: the slot of the edge. ``place``: the position of the neighbor. ``is_gone``: whether it is summed out
        now.
    """

    step: RecordArray
    near: RecordArray


def place_spins(
    start: IntArray, source: IntArray, order: IntArray, across: FloatArray, max_width: int, max_moves: int
) -> tuple[Steps, int] | None:
    """Lay out the chain for spins that arrive in a given order; return the steps and the most sites at once.

    Parameters
    ----------
    start, source
        The graph: neighbors of spin i are ``source[start[i] : start[i + 1]]``.
    order
        The spins in order of arrival: all that are connected to one of them.
    across
        A coordinate of each spin by which the chain is sorted; if empty, a new spin is put between its neighbors.
    max_width, max_moves
        Most sites, and most moves of sites in total; None is returned if more are needed.
    """
    n, degree = len(order), np.diff(start)
    steps = Steps(np.zeros(n, STEP), np.zeros(int(degree[order].sum()) // 2, NEAR))
    steps.step["spin"] = order
    spins = np.zeros(len(degree), SPIN)
    spins["to_come"] = degree
    if len(across):
        spins["across"] = across
    chain = np.zeros(min(max_width, n) + 1, np.int64)
    width = _place(steps, start, source, spins, chain, len(across) > 0, max_width, max_moves)
    if width < 0:
        return None
    # Edges to neighbors whose sites were taken are not in the list.
    return steps._replace(near=steps.near[: steps.step["end"].max(initial=0)].copy()), width


@inlined
def _position_across(spins: RecordArray, chain: IntArray, length: int, y: float) -> int:
    """Return how many sites of a sorted chain have a coordinate of at most y."""
    low, high = 0, length
    while low < high:
        middle = (low + high) // 2
        if spins[chain[middle]].across <= y:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_in_place
def _place(
    steps: Steps,
    start: IntArray,
    source: IntArray,
    spins: RecordArray,
    chain: IntArray,
    is_sorted: bool,
    max_width: int,
    max_moves: int,
) -> int:
    near = steps.near
    n = len(steps.step)
    length, width, moves, edges = 0, 0, 0, 0
    kept_low, kept_high = 0, 0  # the last step's span after it
    for t in range(n):
        step = steps.step[t]
        v = step.spin
        own = spins[v]
        own.has_arrived = 1
        low, high, count, total = n, -1, 0, 0
        for slot in range(start[v], start[v + 1]):
            other = spins[source[slot]]
            if other.has_arrived:
                p = other.position
                other.to_come -= 1
                own.to_come -= 1
                count += 1
                total += p
                low = min(low, p)
                high = max(high, p)
        wanted = length
        if is_sorted:
            wanted = _position_across(spins, chain, length, own.across)
        elif count:
            wanted = (total + count - 1) // count + (1 if count == 1 else 0)
        # Take the site of a neighbor that is done: the one nearest to where the spin would be placed.
        taken, site = -1, -1
        for slot in range(start[v], start[v + 1]):
            other = spins[source[slot]]
            if other.has_arrived and other.to_come == 0:
                p = other.position
                fits = (p == 0 or spins[chain[p - 1]].across <= own.across) and (
                    p == length - 1 or own.across <= spins[chain[p + 1]].across
                )
                if fits and (taken < 0 or abs(p - wanted) < abs(site - wanted)):
                    taken, site = slot, p
        if t > 0:  # where the last step should have left the center
            a, b = low, high
            if count == 0:
                a = b = min(wanted, max(length - 1, 0))
            up = max(max(a - kept_high, kept_high - b), 0)
            down = max(max(a - kept_low, kept_low - b), 0)
            steps.step[t - 1].goes_up = up < down or (up == down and a + b >= kept_low + kept_high)
        if taken < 0:
            if length + 1 > max_width:
                return -1
            step.is_new = 1
            site = wanted
            for p in range(length, site, -1):
                chain[p] = chain[p - 1]
                spins[chain[p]].position = p
            moves += length - site
            length += 1
            # Where no neighbor is near, an adjacent site is part of the span, so that the chain's center can be there.
            if count == 0 and length > 1:
                low = high = site - 1 if site > 0 else 1
            elif count:
                low += 1 if low >= site else 0
                high += 1 if high >= site else 0
        chain[site] = v
        own.position = site
        low, high = min(low, site), max(high, site)
        step.place, step.taken, step.low, step.high = site, taken, low, high
        step.is_gone = own.to_come == 0
        step.start = edges
        for slot in range(start[v], start[v + 1]):
            other = spins[source[slot]]
            if other.has_arrived and slot != taken:
                entry = near[edges]
                entry.slot, entry.place, entry.is_gone = slot, other.position, other.to_come == 0
                edges += 1
        step.end = edges
        width = max(width, length)
        kept = low
        for p in range(low, high + 1):
            other = spins[chain[p]]
            if other.to_come == 0:
                other.position = -1
            else:
                chain[kept] = chain[p]
                other.position = kept
                kept += 1
        gone = high + 1 - kept
        if gone:
            for p in range(high + 1, length):
                chain[p - gone] = chain[p]
                spins[chain[p]].position = p - gone
            moves += length - high
            length -= gone
        moves += high - low + 1
        kept_low = min(low, max(length - 1, 0))
        kept_high = max(kept - 1, kept_low)
        if moves > max_moves:
            return -1
    return width


def predict(steps: Steps, width: int, bond: int) -> tuple[float, float]:
    """Return operations, and the total size of all changes in numbers, at a bond dimension.

    Bonds are assumed to be as large as they can become. An operation takes about a nanosecond.
    """
    operations, changed = _predict(steps, np.ones(width + 2, SITE), float(bond))
    return operations, changed


@compiled_in_place
def _predict(steps: Steps, sites: RecordArray, bond: float) -> tuple[float, float]:
    # the bond of a site is the one to its left
    near = steps.near
    length, center = 0, 0
    operations, changed = 0.0, 0.0
    for t in range(len(steps.step)):
        step = steps.step[t]
        low, high = step.low, step.high
        last = high - step.is_new  # of the sites that were there before
        for p in range(min(center, low), min(max(center, last) + 1, length)):
            left, right = sites[p].bond, sites[p + 1].bond
            changed += 2.0 * left * right
            if p < low or p > last:
                operations += 10e3 + left * right * (30.0 + min(left, right))
        if step.is_new:
            for p in range(length + 1, step.place, -1):
                sites[p].bond = sites[p - 1].bond
            length += 1
        for p in range(low, high + 1):
            sites[p].is_gone = 0
        sites[step.place].is_gone = step.is_gone
        for k in range(step.start, step.end):
            sites[near[k].place].is_gone = near[k].is_gone
        # Between two sites that stay, the smallest bond on the way, doubled by the copy.
        kept = 0
        narrow = sites[low].bond
        for p in range(low, high + 1):
            left, right = sites[p].bond, sites[p + 1].bond
            carried = right * (2.0 if step.start < step.end and p < high else 1.0)
            if sites[p].is_gone:
                narrow = min(narrow, carried)
            else:
                sites[kept].fresh = narrow
                kept += 1
                narrow = carried
            operations += 2e3 + left * right * (10.0 + min(left, right))
        sites[kept].fresh = narrow
        end = sites[high + 1].bond
        for k in range(1, kept + 1):
            sites[k].fresh = min(sites[k].fresh, 2.0 * sites[k - 1].fresh)
        sites[kept].fresh = end
        for k in range(kept - 1, 0, -1):
            beyond = sites[k + 1].fresh
            wide = min(sites[k].fresh, 2.0 * beyond)
            # A QR on the way there, an SVD on the way back; cubic only from bonds of hundreds on, as measured.
            operations += 12e3 + 2.0 * beyond * wide * (85.0 + 0.15 * wide)
            sites[k].fresh = min(wide, bond)
        for k in range(1, kept):
            sites[low + k].bond = sites[k].fresh
        if kept:
            sites[low + kept].bond = end
        lost = high + 1 - low - kept
        for p in range(high + 2, length + 1):
            sites[p - lost].bond = sites[p].bond
        length -= lost
        center = max(min(low + kept - 1 if step.goes_up else low, length - 1), 0)
    return operations, changed
