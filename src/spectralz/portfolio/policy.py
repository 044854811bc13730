"""Policy constants: how the time is shared between methods. When an answer is trusted is decided in ``trust/``.

What things cost is in ``_support/costs.py``.
"""

from __future__ import annotations

# --- the verdict: what kind of evidence a method gives ---------------------------------------------------------------

# Methods whose error is not a scatter of samples: if a sampler disagrees with them, the sampler is preferred.
WITHOUT_SAMPLES = ("ep", "bp")
# Methods of one kind are likely to be wrong together, so they do not check each other: `states` sums over the
# populations of `annealing`. A method that is not named here is a kind of its own.
KINDS = {
    **dict.fromkeys(WITHOUT_SAMPLES, "without samples"),
    **dict.fromkeys(("annealing", "states"), "populations"),
}
# Methods whose doubtful answers still test those of others.
SAMPLERS = ("annealing",)

# --- the budget of `auto` -------------------------------------------------------------------------------------------

# The target standard error at ten seconds; it falls as one over the root of the budget.
TOL_AT_TEN_SECONDS = 1e-3
# Share of the budget for bounds.
BOUNDS_SHARE = 0.15
# Where a side of a bipartite model with many spins is summed out, bounds are wide: they get this part of their time.
# Couplings stronger than this on average are for annealing; expectation and belief propagation are left out.
MANY_SPINS_OF_SIDES, BOUNDS_PART_OF_SIDES, STRONGEST_EP_OF_SIDES = 300, 0.25, 0.5
# States that go both ways, and bounds at the end, take this share of what is left.
NEXT_ROUND_SHARE = 0.7
# Annealing gets at least this share of the budget.
LEAST_FOR_ANNEALING = 0.3
MOST_GROWTH = 1e6
# Large dense models are not annealed if the predicted time of the fewest states is this many times too long.
HOPELESS_TIMES = 3.0
# The length of the path is surveyed if the predicted time is at most this share of what is left; it may take this many
# times as long.
SURVEY_SHARE, SURVEY_TIMES = 0.25, 2.0
# Where couplings exceed this, sqrt(sum_j J_ij^2) on average over i, it is cold.
WARM = 2.0
# States that are swept together, and how many times as many go both ways, at least.
STATES_TOGETHER, FEWEST_RUNS = 64, 2
# Clusters are turned if there is time for this many points with clusters. Going both ways takes so many times as long.
FEWEST_CLUSTER_POINTS = 100
BOTH_WAYS_TIMES = 2.6
# If samples are available, marginals come from a pool of states only if it holds this share of P(x).
SHARE_FOR_MARGINALS = 0.99
# Marginals are averages over this many states, or as many as have this many spins in total.
STATES_FOR_MARGINALS, SPINS_FOR_MARGINALS = 20_000, 1e8
# They are fewer, down to this many, if the time is short: what is left of it, or a share of it, or so many seconds
# after an interrupt.
FEWEST_FOR_MARGINALS, SHARE_FOR_MEANS, SECONDS_FOR_MEANS_AFTER_INTERRUPT = 16, 0.1, 0.5
# Most and fewest points of states that go both ways.
MOST_POINTS, FEWEST_POINTS_BOTH_WAYS = 1_000_000, 4
# The share of what is left for expectation propagation, and the part of it for up to 500 spins, which populations can
# do as well. It is not run if sqrt(sum_j J_ij^2) is this or more on average, where it is never trusted
# (``trust/propagation.py``), or, without fields, hardly ever.
EP_SHARE, EP_PART_OF_FEW, STRONGEST_EP, STRONGEST_EP_WITHOUT_FIELDS = 0.5, 0.2, 1.0, 0.9
# The fewest steps that are worthwhile.
FEWEST_EP_STEPS = 6.0
# Messages miss a phase that mirrors their own or is equally heavy: log 2 is twice this error.
LEAST_BP_ERROR = 0.35
# If ep does not trust itself or was not run, belief propagation gets this share of what is left, provided that the
# fewest iterations fit; it makes at most the second number. It is not run with fewer spins or more neighbors, on
# average, than the last two of these.
BP_SHARE, FEWEST_BP_ITERATIONS, MOST_BP_ITERATIONS, FEWEST_BP_SPINS, MOST_BP_DEGREE = 0.15, 20, 300, 300, 10.0
BP_DAMPING, BP_TOL = 0.3, 1e-8
# Compressed elimination: its share of what is left, and the share of that for finding an order; the first bond, doubled
# up to the largest; states drawn; the total time in contractions. The mean number of neighbors is at most this, and at
# most a share of all spins. With twice the bond, the error of an untrusted answer must fall to this share of the
# previous one. An answer that is good enough is improved, to the second tolerance, if that takes a small share of its
# time. Once it has answered, annealing as a check gets this share of the rest.
MPS_SHARE, MPS_PLAN_SHARE, CHECK_SHARE = 0.6, 0.3, 0.1
FIRST_BOND, MOST_BOND, MPS_SAMPLES, MPS_TIMES = 8, 1024, 500, 4.0
# An order is chosen for contractions with this bond: with smaller ones a wide frontier seems to cost little.
BOND_TO_PLAN_FOR = 32
MOST_MPS_DEGREE, MOST_MPS_DENSITY, MPS_FALL = 12.0, 0.5, 0.5
# Discarded squares of singular values, relative to all of their bonds: an amount that is small, one that is good enough
# if there is no time for more, an initial amount that is hopeless, and the share to which it must fall with twice the
# bond.
LITTLE_DISCARDED, NOT_MUCH_DISCARDED, MOST_DISCARDED, DISCARDED_FALL = 1e-3, 0.3, 3.0, 0.1
MPS_TOL, CHEAP_MPS_SHARE = 1e-6, 0.3
# With more spins than this, no order is searched for if a layer of equal distance from a spin has more spins than this
# many times the root of their number: a two-dimensional lattice has twice the root, a three-dimensional one about eight
# times.
MPS_SPINS_UNSEEN, MPS_LAYER_ROOTS = 5000, 10.0
# If that fails and the model is cold: sums over the heaviest frontier states, with limits on the width of the frontier
# and on the states. Contractions get the first share of the time before.
BONDS_SHARE, MOST_COLD_WIDTH, MOST_FRONTIER_STATES = 0.4, 60, 1_000_000
# The same for heavy states of populations.
COLLECT_SHARE = 0.15
# The fewest states may take this share of the time; a population of as many states as are swept together, the other.
ANNEALING_SHARE, POPULATION_SHARE = 0.7, 0.2
# Populations leave the rest of the time to the sum over their states.
POPULATIONS_SHARE = 0.92
# From so many spins on, states go both ways if too few families of a population would be left. With 500 to 1,600 spins
# even few families are closer to log Z, by factors of 1 to 4 (8^3, 10^3, 32 x 32 and 40 x 40 glasses, SK of 500).
FEWEST_BOTH_WAYS = 4000
# A search for phases that states which went both ways have missed takes this share of the time.
SEARCH_FOR_PHASES_SHARE = 0.05
# Quenches of random states, and the share of the time that they may take.
QUENCHES, QUENCHES_SHARE = 1000, 0.1
RESTARTS = 20
# All exact answers together may take this many times the budget; one predicted to take up to half a second is always
# computed. The time of others is predicted from a timed run with this many spins.
EXACT_TIMES = 10.0
CHEAP_OPERATIONS = 5e8
# With fewer spins, planar models are for elimination.
FEWEST_PLANAR_SPINS = 200
TIMED_EXACT_SPINS = 16
# The search for an elimination order may take this share of the budget: if an exact answer is wanted where possible,
# and if bounds only report that it would be possible. They report it if they are farther apart than this.
EXACT_SEARCH_SHARE, EXACT_HINT_SHARE = 0.1, 0.05
CLOSED_BRACKET = 1e-6
# Samples are drawn from groups of at least this size; all together take this share of the time.
FEWEST_TO_DRAW_FROM, SHARE_TO_DRAW = 2, 0.4
# Seconds that the other components share after an interrupt, and once the budget is spent.
SECONDS_AFTER_INTERRUPT, SECONDS_AT_LEAST = 0.01, 0.1

# --- the allowance of the bounders ----------------------------------------------------------------------------------

# No single bounder plans to use more than this share of what is left.
LARGEST_SHARE = 0.5
# Up to this mean degree the bounds based on edges are the tight ones, beyond it those of the SDP.
MOST_SPARSE_DEGREE = 10.0
SDP_TOL = 1e-6
# Couplings of up to this density are planned as sparse ones by the SDP.
SPARSE_DENSITY = 0.05
LEAST_ITERATIONS, MOST_ITERATIONS = 20, 1000
EDGE_STEPS = 5
LEAST_IBOUND, MOST_IBOUND = 5, 18
# Its tables are the largest for which there is time for this many rounds. This many rounds are made on one side before
# switching to the other, and a side continues while that narrows the bracket by this share. From below only brackets of
# up to this many nats per spin are pursued: those of colder models are wider than those of mean field. The distance of
# an upper bound without a lower one from log Z is estimated as this share of its gain so far.
FEW_ROUNDS, ROUNDS_AT_ONCE, LEAST_GAIN_OF_ROUNDS = 40, 6, 0.01
MOST_WIDTH_PER_SPIN, LOOSE_PART = 0.1, 0.03
# In ``auto`` it is left out on complete graphs if n sqrt(sum_j J_ij^2) is more than this: on glasses of 100 spins it is
# behind the SDP from a strength of 0.85 on, on those of 300 from 0.3 on.
MOST_STRENGTH_OF_TABLES = 90.0
# The time assumed for work that takes no time by a coarse clock.
TICK = 1e-9
# Random starts of mean field after the first, the share that they may take, and that of all starts without blocks.
BOUNDING_RESTARTS, RESTARTS_SHARE, SINGLE_SPINS_SHARE = 50, 0.2, 0.4
# Blocks of mean field: the first, the increment and the largest width; the most sweeps, the change of means at which
# they end, and the number of starts with the widest blocks.
FIRST_BLOCK_WIDTH, BLOCK_WIDTH_STEP, MOST_BLOCK_WIDTH = 4, 4, 18
BLOCK_SWEEPS, BLOCK_TOL, BLOCK_RESTARTS = 20, 1e-3, 20
# A quick annealing: few temperatures, few states, and as many quenches.
QUICK_STEP = 1.0
FEWEST_STATES, MOST_ANNEALED = 20, 1000
STATES_SHARE = 0.3

# --- intervals with a stated probability, beside a bracket ----------------------------------------------------------

# Their share of the budget, and the share of it for states drawn from wmbe's bound, half of it for the bound itself.
# Tables are as large as possible with time for this many rounds; at most this many states are drawn.
INTERVAL_SHARE, MINI_BUCKETS_SHARE = 0.5, 0.6
ROUNDS_FOR_DRAWING, MOST_ROUNDS_FOR_DRAWING, MOST_DRAWN = 30, 300, 1 << 20
# Drawing this many states lowers the upper end below wmbe's bound by at most this much.
NATS_BY_DRAWING = 12.0
# If both ends are this close, no further source is used; if the proven bounds are this close, relative to log Z, none
# is used.
NARROW_INTERVAL, KNOWN_WIDTH = 0.02, 1e-9
# Annealing needs the time of at least this many points of a path with 64 states, and uses as many points as leave time
# for this many runs.
FEWEST_POINTS_FOR_INTERVAL, RUNS_FOR_INTERVAL = 100, 16

# ------------------------------------------------------------------------------------ terms of three and more spins

# Why methods are left out, and the bounders that are not.
PAIRS_ONLY, NO_CONSTRAINTS = "it takes pairs of spins only", "it takes no constraints"
BOUNDERS_OF_TERMS = ("mf", "states", "wmbe")
# The bounders that take constraints, and those whose upper bound is that of the model without them.
BOUNDERS_OF_CONSTRAINTS, BLIND_BOUNDERS = ("states", "wmbe"), ("sdp", "convex_mf", "trw")
