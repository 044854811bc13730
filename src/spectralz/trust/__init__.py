"""When an answer is trusted: evidence in, judgment out. Pure functions, and every constant that they use."""

from spectralz.trust.judgment import Judgment
from spectralz.trust.populations import judge
from spectralz.trust.rules import Rules

__all__ = ["Judgment", "Rules", "judge"]
