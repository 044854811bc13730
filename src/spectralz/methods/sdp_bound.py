"""The upper bound of the diagonal SDP alone: Eq. (15) of the paper, without eigenvectors or factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spectralz._support.devices import device_option
from spectralz._support.options import count, option, positive, threads_option
from spectralz.methods.base import Method, Outcome
from spectralz.parts.sdp.diagonal import coupling_alone, solve_diagonal, upper_of_log_z
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.model import Ising


@dataclass(frozen=True, kw_only=True)
class SDPBound(Method):
    r"""Bound log Z from above, with proof, by the semidefinite program of the paper alone.

    With the field as one more spin, and apart from the offset,

    .. math::

       \log Z \le n \log 2 - \operatorname{Tr} D \quad \text{for every diagonal } D \text{ with } A + D \preceq 0.

    The program finds the D of largest trace, and the feasibility of D is proven in floating point. `spectral` has the
    same ``upper`` and goes on to an estimate. The bound alone needs no eigenvectors and can be computed for thousands
    of spins.

    Parameters
    ----------
    tol
        Relative gap of the program.
    max_iter
        Most trust-region steps in each component; the bound holds after any number of steps.
    seed
        Seed of the random start, which changes the bound by no more than the gap.
    threads
        Most threads to use; by default all cores that the process may use. They are those of linear algebra, which has
        one for up to 1,000 spins; beyond, the answer depends on their number, but only by rounding.
    device
        Where to compute: ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one
        and the model is dense with at least 2,000 spins.

    See Also
    --------
    diagonal_sdp : the program itself, for any matrix.
    ConvexMeanField : never above this bound, and much below it if fields are strong.

    References
    ----------
    .. [1] Park et al., "Spectral Approximate Inference", ICML 2019, Sec. 3.3.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "sdp")
    >>> print(result.kind)
    upper bound
    >>> sz.log_z(model, "exact").log_z < result.upper == sz.log_z(model, "spectral").upper
    True
    """

    tol: float = option(1e-6, positive(below=1.0))
    max_iter: int = option(500, count(least=0))
    seed: int = option(0, count(least=0))
    threads: int | None = threads_option()
    device: str = device_option()

    name: ClassVar[str] = "sdp"
    works_on_matrices: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        sdp = solve_diagonal(coupling_alone(model), self.tol, self.max_iter, self.seed)
        upper = upper_of_log_z(model, -sdp.diagonal)
        diagonal = sdp.diagonal.copy()
        diagonal[: model.n] -= model.diagonal
        return Outcome(
            log_z=upper,
            kind=Kind.UPPER_BOUND,
            status=Status(f"SDP {sdp.status}", converged=sdp.status.converged),
            upper=upper,
            iterations=sdp.iterations,
            details={"diagonal": diagonal, "gap": sdp.gap},
        )
