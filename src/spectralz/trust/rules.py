"""Every number that decides whether the answer of populations is trusted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The numbers by which :func:`spectralz.trust.judge` decides, and by which phases are looked for.

    ``python -m benchmarks.honesty`` measures what they are worth: how many answers are trusted, and how many of these
    are wrong.

    Attributes
    ----------
    families
        A cell that matters has at least so many effective families, and a population has met a phase if it has so many
        there.
    heaviest
        The heaviest family holds at most this share of a cell that matters.
    matters
        A cell matters if its share of Z exceeds this part of the error.
    contradiction
        Two populations contradict each other in a cell if they differ by so many of their joint errors.
    few_families
        A population with fewer families than this in a cell contradicts nobody there; it may be contradicted.
    excess, excess_share, excess_families
        A population that does not count in a cell, with so many families there, may find so many times what counts, or
        this share of Z.
    seen_once
        With f1 and f2 phases that one or two sources led to, f1 (f1 - 1) / (2 (f2 + 1)) estimates how many were not
        found (Chao); it has to be below this.
    once_share
        No phase that a single source led to holds more than this part of Z.
    light
        Phases lighter than Z by more nats are left out, and their bounds added to the error.
    most_phases
        Most phases that are measured.
    fewest_groups
        Fewer groups than this do not show their scatter.
    """

    families: float = 30.0
    heaviest: float = 0.5
    matters: float = 0.5
    contradiction: float = 3.5
    few_families: float = 10.0
    excess: float = 20.0
    excess_share: float = 0.5
    excess_families: float = 3.0
    seen_once: float = 1.0
    once_share: float = 0.5
    light: float = 7.0
    most_phases: int = 12
    fewest_groups: int = 8


RULES = Rules()
