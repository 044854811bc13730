"""When an answer is trusted: evidence in, judgment out. Pure functions, and every constant that they use."""

from spectralz.trust.judgment import Judgment, Rules
from spectralz.trust.populations import judge

__all__ = ["Judgment", "Rules", "judge"]
