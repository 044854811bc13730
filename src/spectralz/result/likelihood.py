"""The likelihood of data under a model, with the error of log Z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz.result.equality import Compared
from spectralz.result.kinds import Status, entries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectralz.result.estimate import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class DataLikelihood(Compared):
    """Hold the mean log-likelihood per row of data, with the error from log Z.

    Attributes
    ----------
    log_likelihood
        The mean of ``log_prob``.
    std_error
        The error of log Z, common to all rows, or None if it is exact. It does not include that the rows are a sample.
    sampling_error
        The standard error of the mean because the rows are a sample, or None if there is one row.
    lower, upper
        Proven bounds on ``log_likelihood`` if log Z has proven bounds, or None.
    log_prob
        log P of every row, hidden units summed out.
    estimate
        log Z as it was found.
    reverse, reverse_error
        The same mean from annealing backwards from some of the rows (``reverse_rows`` of them), corrected for the
        choice of rows, and its standard error; None if not asked for. Annealing forwards finds too little of Z,
        so that the likelihood is too high; backwards it is too low. If the two agree, both are right. A value beyond
        the proven bounds is replaced by the bound.
    status
        How the two compare, as a sentence; ``status.converged`` says whether they agree.
    """

    log_likelihood: float
    std_error: float | None
    sampling_error: float | None
    lower: float | None
    upper: float | None
    log_prob: NDArray[np.float64]
    estimate: Estimate
    reverse: float | None
    reverse_error: float | None
    reverse_rows: int
    status: Status

    def __float__(self) -> float:
        return self.log_likelihood

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        names = "log_likelihood std_error sampling_error lower upper log_prob reverse reverse_error reverse_rows"
        return {**entries(self, f"{names} estimate status"), "converged": self.status.converged}

    def __repr__(self) -> str:
        return f"DataLikelihood({_number(self.log_likelihood, self.std_error)} per row, {len(self.log_prob)} rows)"

    def __str__(self) -> str:
        lines = [f"log-likelihood  {_number(self.log_likelihood, self.std_error)} per row, {len(self.log_prob)} rows"]
        if self.sampling_error is not None:
            lines.append(f"sampling error  {self.sampling_error:.2g}, since the rows are a sample; ± is that of log Z")
        if self.reverse is not None:
            shown = _number(self.reverse, self.reverse_error)
            lines.append(f"backwards       {shown} per row, from {self.reverse_rows} of them")
        if self.lower is not None and self.upper is not None:
            lines.append(f"proven          between {self.lower:.6g} and {self.upper:.6g}")
        return "\n".join([*lines, f"status          {self.status}"])


def _number(value: float, error: float | None) -> str:
    return f"{value:.6g}" if not error else f"{value:.6g} ± {error:.2g}"
