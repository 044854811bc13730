"""What is public, and where it is: imported on first use (``lazy_loader``)."""

from . import (
    closed_forms as closed_forms,
    constraints as constraints,
    errors as errors,
    generators as generators,
    plots as plots,
)
from .compilation import (
    Compilation as Compilation,
    warm_up as warm_up,
)
from .errors import SpectralzError as SpectralzError
from .inference import (
    bounds as bounds,
    compare as compare,
    count as count,
    describe as describe,
    energy as energy,
    entropy as entropy,
    log_prob as log_prob,
    log_ratio as log_ratio,
    log_z as log_z,
    map_state as map_state,
    marginals as marginals,
    predict as predict,
    sample as sample,
    temperature as temperature,
    thermodynamics as thermodynamics,
)
from .io import (
    read as read,
    write as write,
)
from .io.interop import (
    from_dimod as from_dimod,
    from_networkx as from_networkx,
    from_pandas as from_pandas,
    from_polynomial as from_polynomial,
    from_qubo as from_qubo,
)
from .learning import (
    IsingEstimator as IsingEstimator,
    fit as fit,
)
from .methods import (
    Annealing as Annealing,
    BeliefPropagation as BeliefPropagation,
    ConvexMeanField as ConvexMeanField,
    Exact as Exact,
    ExpectationPropagation as ExpectationPropagation,
    LowRank as LowRank,
    MatrixProduct as MatrixProduct,
    MeanField as MeanField,
    Method as Method,
    MiniBucket as MiniBucket,
    Planar as Planar,
    Quadrature as Quadrature,
    SDPBound as SDPBound,
    Spectral as Spectral,
    States as States,
    TreeReweighted as TreeReweighted,
    WeightedMiniBucket as WeightedMiniBucket,
)
from .model import (
    RBM as RBM,
    Ising as Ising,
    Polynomial as Polynomial,
    from_tables as from_tables,
)
from .parts.sdp.diagonal import (
    DiagonalSDP as DiagonalSDP,
    diagonal_sdp as diagonal_sdp,
)
from .portfolio.auto import Auto as Auto
from .registry import (
    METHODS as METHODS,
    PAPER_SETTINGS as PAPER_SETTINGS,
)
from .result import (
    Bounds as Bounds,
    BoundsRow as BoundsRow,
    Comparison as Comparison,
    ComparisonRow as ComparisonRow,
    Count as Count,
    Description as Description,
    Estimate as Estimate,
    Fit as Fit,
    Interval as Interval,
    Kind as Kind,
    LogProb as LogProb,
    MapState as MapState,
    Marginals as Marginals,
    Populations as Populations,
    Prediction as Prediction,
    Quantity as Quantity,
    Status as Status,
    Temperature as Temperature,
    Thermodynamics as Thermodynamics,
    Trial as Trial,
    Verdict as Verdict,
)

__version__: str
