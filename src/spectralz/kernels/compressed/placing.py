"""Place each spin in the chain that holds the frontier; this uses the graph only, not the weights.

Spins arrive one after the other. The *frontier* is the set of spins that have arrived and have neighbors still to come;
its spins are the sites of a chain. An arriving spin takes the site of a neighbor that has no neighbors left to come, or
a new site. A spin with no neighbors left to come is summed out. A step changes the sites between the farthest neighbors
of the spin, its *span*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner

if TYPE_CHECKING:
    from spectralz.kernels.arrays import BoolArray, FloatArray, IntArray


class Steps(NamedTuple):
    """The step for each spin, in the order of arrival.

    Positions are those in the chain after the spin has been given its site, and before others are summed out.

    Attributes
    ----------
    spin
        The spin that arrives.
    place, is_new
        Its position, and whether the site is new; otherwise it is the site of a neighbor, which is summed out.
    taken
        The slot (of the graph) of the edge to the neighbor whose site is taken, or -1.
    low, high
        First and last position of the span.
    is_gone
        Whether the spin has no neighbors left to come, and is summed out at once.
    goes_up
        Whether the chain's center is left at the upper end of the span, where the next step is nearer.
    start, near, near_place, near_gone
        Other neighbors that have arrived, ``start[t]`` to ``start[t + 1]``: the slots of their edges, their positions,
        and whether they are summed out now.
    """

    spin: IntArray
    place: IntArray
    is_new: BoolArray
    taken: IntArray
    low: IntArray
    high: IntArray
    is_gone: BoolArray
    goes_up: BoolArray
    start: IntArray
    near: IntArray
    near_place: IntArray
    near_gone: BoolArray


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
    n = len(order)
    m = int((start[order + 1] - start[order]).sum()) // 2
    spin = np.ascontiguousarray(order, dtype=np.int64)
    place, low, high = np.zeros((3, n), np.int64)
    is_new, is_gone, goes_up = np.zeros((3, n), np.bool_)
    taken, first_near = np.full(n, -1, np.int64), np.zeros(n + 1, np.int64)
    near, near_place, near_gone = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.bool_)
    steps = Steps(spin, place, is_new, taken, low, high, is_gone, goes_up, first_near, near, near_place, near_gone)
    width = _place(steps, start, source, np.ascontiguousarray(across, dtype=np.float64), max_width, max_moves)
    if width < 0:
        return None
    # Edges to neighbors whose sites were taken are not in the list.
    used = slice(int(steps.start[-1]))
    steps = steps._replace(near=near[used].copy(), near_place=near_place[used].copy(), near_gone=near_gone[used].copy())
    return steps, width


@inner
def _position_across(across: FloatArray, chain: IntArray, length: int, y: float) -> int:
    """Return how many sites of a sorted chain have a coordinate of at most y."""
    low, high = 0, length
    while low < high:
        middle = (low + high) // 2
        if across[chain[middle]] <= y:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _place(steps: Steps, start: IntArray, source: IntArray, across: FloatArray, max_width: int, max_moves: int) -> int:
    n, spins = len(steps.spin), len(start) - 1
    is_sorted = len(across) > 0
    chain = np.empty(min(max_width, n) + 1, np.int64)
    position = np.full(spins, -1, np.int64)
    to_come = np.empty(spins, np.int64)
    has_arrived = np.zeros(spins, np.bool_)
    for i in range(spins):
        to_come[i] = start[i + 1] - start[i]
    length, width, moves, edges = 0, 0, 0, 0
    kept_low, kept_high = 0, 0  # the last step's span after it
    for t in range(n):
        v = steps.spin[t]
        has_arrived[v] = True
        low, high, count, total = n, -1, 0, 0
        for slot in range(start[v], start[v + 1]):
            u = source[slot]
            if has_arrived[u]:
                to_come[u] -= 1
                to_come[v] -= 1
                count += 1
                total += position[u]
                low = min(low, position[u])
                high = max(high, position[u])
        wanted = length
        if is_sorted:
            wanted = _position_across(across, chain, length, across[v])
        elif count:
            wanted = (total + count - 1) // count + (1 if count == 1 else 0)
        # Take the site of a neighbor that is done: the one nearest to where the spin would be placed.
        taken, site = -1, -1
        for slot in range(start[v], start[v + 1]):
            u = source[slot]
            if has_arrived[u] and to_come[u] == 0:
                p = position[u]
                fits = not is_sorted or (
                    (p == 0 or across[chain[p - 1]] <= across[v])
                    and (p == length - 1 or across[v] <= across[chain[p + 1]])
                )
                if fits and (taken < 0 or abs(p - wanted) < abs(site - wanted)):
                    taken, site = slot, p
        is_new = taken < 0
        if t > 0:  # where the last step should have left the center
            a, b = low, high
            if count == 0:
                a = b = min(wanted, max(length - 1, 0))
            up = max(max(a - kept_high, kept_high - b), 0)
            down = max(max(a - kept_low, kept_low - b), 0)
            steps.goes_up[t - 1] = up < down or (up == down and a + b >= kept_low + kept_high)
        if is_new:
            if length + 1 > max_width:
                return -1
            site = wanted
            for p in range(length, site, -1):
                chain[p] = chain[p - 1]
                position[chain[p]] = p
            moves += length - site
            length += 1
            # Where no neighbor is near, an adjacent site is part of the span, so that the chain's center can be there.
            if count == 0 and length > 1:
                low = high = site - 1 if site > 0 else 1
            elif count:
                low += 1 if low >= site else 0
                high += 1 if high >= site else 0
        chain[site] = v
        position[v] = site
        steps.place[t] = site
        steps.is_new[t] = is_new
        steps.taken[t] = taken
        steps.low[t] = low = min(low, site)
        steps.high[t] = high = max(high, site)
        steps.is_gone[t] = to_come[v] == 0
        steps.start[t] = edges
        gone = 0
        for slot in range(start[v], start[v + 1]):
            u = source[slot]
            if has_arrived[u] and slot != taken:
                steps.near[edges] = slot
                steps.near_place[edges] = position[u]
                steps.near_gone[edges] = to_come[u] == 0
                edges += 1
        width = max(width, length)
        kept = low
        for p in range(low, high + 1):
            if to_come[chain[p]] == 0:
                gone += 1
                position[chain[p]] = -1
            else:
                chain[kept] = chain[p]
                position[chain[p]] = kept
                kept += 1
        if gone:
            for p in range(high + 1, length):
                chain[p - gone] = chain[p]
                position[chain[p]] = p - gone
            moves += length - high
            length -= gone
        moves += high - low + 1
        kept_low = min(low, max(length - 1, 0))
        kept_high = max(kept - 1, kept_low)
        if moves > max_moves:
            return -1
    steps.start[n] = edges
    return width


@compiled
def predict(steps: Steps, width: int, bond: int) -> tuple[float, float, float]:
    """Return operations, largest size of the chain and total size of all changes, in numbers, at a bond dimension.

    Bonds are assumed to be as large as they can become. An operation takes about a nanosecond.
    """
    n = len(steps.spin)
    # bonds[p] is the dimension to the left of position p
    bonds = np.ones(width + 2)
    fresh = np.ones(width + 2)
    gone = np.zeros(width + 2, np.bool_)
    length = 0
    center = 0
    operations, largest, changed, size = 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        low, high, place = steps.low[t], steps.high[t], steps.place[t]
        first, last = low, high  # of the sites that were there before
        if steps.is_new[t]:
            last -= 1
        for p in range(min(center, first), max(center, last) + 1):
            if p < length:
                changed += 2.0 * bonds[p] * bonds[p + 1]
                if p < first or p > last:
                    operations += 10e3 + bonds[p] * bonds[p + 1] * (30.0 + min(bonds[p], bonds[p + 1]))
        if steps.is_new[t]:
            for p in range(length + 1, place, -1):
                bonds[p] = bonds[p - 1]
            length += 1
        for p in range(low, high + 1):
            gone[p] = False
        gone[place] = steps.is_gone[t]
        carries = steps.start[t + 1] > steps.start[t]
        for k in range(steps.start[t], steps.start[t + 1]):
            gone[steps.near_place[k]] = steps.near_gone[k]
        # Between two sites that stay, the smallest bond on the way, doubled by the copy.
        kept = 0
        narrow = bonds[low]
        for p in range(low, high + 1):
            if gone[p]:
                narrow = min(narrow, bonds[p + 1] * (2.0 if carries and p < high else 1.0))
            else:
                fresh[kept] = narrow
                kept += 1
                narrow = bonds[p + 1] * (2.0 if carries and p < high else 1.0)
            operations += 2e3 + bonds[p] * bonds[p + 1] * (10.0 + min(bonds[p], bonds[p + 1]))
        fresh[kept] = narrow
        end = bonds[high + 1]
        for k in range(1, kept + 1):
            fresh[k] = min(fresh[k], 2.0 * fresh[k - 1])
        fresh[kept] = end
        for k in range(kept - 1, 0, -1):
            wide = min(fresh[k], 2.0 * fresh[k + 1])
            if kept > 1:
                # A QR on the way there, an SVD on the way back; cubic only from bonds of hundreds on, as measured.
                operations += 12e3 + 2.0 * fresh[k + 1] * wide * (85.0 + 0.15 * wide)
            fresh[k] = min(wide, bond)
        lost = high + 1 - low - kept
        for k in range(1, kept):
            bonds[low + k] = fresh[k]
        if kept:
            bonds[low + kept] = end
        for p in range(high + 2, length + 1):
            bonds[p - lost] = bonds[p]
        length -= lost
        center = max(min(low + kept - 1 if steps.goes_up[t] else low, length - 1), 0)
        if t % 16 == 0 or n < 5000:
            size = 0.0
            for p in range(length):
                size += 2.0 * bonds[p] * bonds[p + 1]
            largest = max(largest, size)
    return operations, largest, changed
