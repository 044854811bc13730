"""The oracle of mini-bucket elimination: dictionaries from assignments to logs, one formula after the other.

A partition is what ``details["buckets"]`` shows: (spin, mini-buckets), each with its scope, its edges, and the messages
that it takes in, as (spin, which of its mini-buckets). The first mini-bucket of a spin has its field. Nothing is taken
from the package but the numbers of the model.
"""

from __future__ import annotations

import itertools
import math

import spectralz as sz


def log_sum(values: list[float]) -> float:
    largest = max(values)
    return largest + math.log(sum(math.exp(v - largest) for v in values))


def power_sum(values: list[float], weight: float) -> float:
    """Log of (sum f^(1/w))^w."""
    return weight * log_sum([v / weight for v in values])


def upper(values: list[float], which: int, of: int) -> float:
    """Dechter and Rish: sum in the first mini-bucket, max in the others."""
    return log_sum(values) if which == 0 else max(values)


def lower(values: list[float], which: int, of: int) -> float:
    return log_sum(values) if which == 0 else min(values)


def uniform(values: list[float], which: int, of: int) -> float:
    """Liu and Ihler with equal weights."""
    return power_sum(values, 1.0 / of)


def bound(model: sz.Ising, buckets, operator=None, weights=None) -> float:
    """Eliminate spin after spin; each mini-bucket leaves a table over the rest of its scope.

    By an operator, or with weights: those of the first spin's mini-buckets, of the second's, and so on.
    """
    edges, J = model.edges()
    weight = {tuple(pair): float(value) for pair, value in zip(edges.tolist(), J, strict=True)}
    tables: dict[tuple[int, int], tuple[list[int], dict[tuple[int, ...], float]]] = {}
    total = model.offset + sum(float(d) for d in model.diagonal)
    for place, (spin, parts) in enumerate(buckets):
        for which, part in enumerate(parts):
            rest = [u for u in part["scope"] if u != spin]
            table = {}
            for assignment in itertools.product([-1, 1], repeat=len(rest)):
                values = []
                for own in (-1, 1):
                    x = {spin: own, **dict(zip(rest, assignment, strict=True))}
                    value = float(model.field[spin]) * own if which == 0 else 0.0
                    for i, j in part["edges"]:
                        value += weight[i, j] * x[i] * x[j]
                    for message in part["messages"]:
                        scope, numbers = tables[tuple(message)]
                        value += numbers[tuple(x[u] for u in scope)]
                    values.append(value)
                if weights is None:
                    table[assignment] = operator(values, which, len(parts))
                else:
                    table[assignment] = power_sum(values, weights[place][which])
            tables[spin, which] = rest, table
            if not rest:
                total += table[()]
    return total


def first_fit(model: sz.Ising, order: list[int], ibound: int):
    """Partition by scope: the widest function first, each into the first mini-bucket with room; edges win ties."""
    waiting: dict[int, list] = {v: [] for v in order}
    position = {v: k for k, v in enumerate(order)}
    for pair in model.edges()[0].tolist():
        waiting[min(pair, key=position.get)].append((set(pair), "edges", tuple(pair)))
    buckets = []
    for spin in order:
        parts: list[dict] = []
        for scope, kind, name in sorted(waiting[spin], key=lambda function: -len(function[0])):
            for part in parts:
                if len(part["scope"] | scope) <= ibound:
                    break
            else:
                part = {"scope": set(), "edges": [], "messages": []}
                parts.append(part)
            part["scope"] |= scope
            part[kind].append(name)
        parts = parts or [{"scope": {spin}, "edges": [], "messages": []}]
        for which, part in enumerate(parts):
            part["scope"] = sorted(part["scope"], key=position.get)
            if len(part["scope"]) > 1:
                waiting[part["scope"][1]].append((set(part["scope"][1:]), "messages", (spin, which)))
        buckets.append((spin, parts))
    return buckets


def check_partition(model: sz.Ising, buckets, ibound: int) -> None:
    """Every spin, edge and message once, each where its first spin is eliminated, and no mini-bucket too wide."""
    order = [spin for spin, _ in buckets]
    assert sorted(order) == list(range(model.n))
    edges, taken, left = [], [], []
    for spin, parts in buckets:
        assert parts
        for which, part in enumerate(parts):
            scope = part["scope"]
            assert scope[0] == spin
            assert len(scope) <= ibound
            assert len(set(scope)) == len(scope)
            assert all(order.index(u) > order.index(spin) for u in scope[1:])
            inside = {spin}.union(*part["edges"])
            for message in part["messages"]:
                child_scope = dict(buckets)[message[0]][message[1]]["scope"]
                assert child_scope[1] == spin
                inside |= set(child_scope[1:])
            assert inside == set(scope)
            edges += [tuple(pair) for pair in part["edges"]]
            taken += [tuple(message) for message in part["messages"]]
            if len(scope) > 1:
                left.append((spin, which))
    assert sorted(edges) == [tuple(pair) for pair in model.edges()[0].tolist()]
    assert sorted(taken) == sorted(left)
