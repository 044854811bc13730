"""The constants that are policy: who gets which share of the time, and from where on an answer is believed.

Costs are in seconds as measured on one core, or in operations, of which one core does about 1e9 a second; they only
decide what is tried, never what is said of it.
"""

from __future__ import annotations

import math

# --- trust: what the verdict goes by --------------------------------------------------------------------------------

# Two answers agree if they are this many of their joint standard errors apart.
AGREEMENT = 3.0
# Agreement with a wider answer is no check: that one would agree without a phase that holds half of Z, too.
LARGEST_CHECKING_ERROR = math.log(2.0) / AGREEMENT
# An answer may lie outside the proven bounds by so many of its errors.
OUTSIDE_BOUNDS = 2.0
# An error bar that its own method does not trust is widened so many times, but not beyond the deviation of a number
# that may be anywhere between the bounds: their width divided by the second one. The methods themselves have put into
# it what their runs know.
DOUBT = 1.25
WIDTHS_PER_DEVIATION = math.sqrt(12.0)
# Samples are distrusted where a state that they have not met holds at least this share of Z.
SHARE_ELSEWHERE = 0.02
# With such a state added, the error is this at least, or what was added.
LEAST_ERROR_ELSEWHERE = 0.5
# Methods whose error is no scatter of samples: a sampler that disagrees is right rather than these.
WITHOUT_SAMPLES = ("ep", "bp")
# Methods whose doubtful answers say something of others'.
SAMPLERS = ("annealing",)

# --- the budget of `auto` -------------------------------------------------------------------------------------------

# Seconds, if nothing is said.
BUDGET = 10.0
# Its answer is wanted to this standard error at ten seconds, and less with more, as the root of the budget.
TOL_AT_TEN_SECONDS = 1e-3
# Shares of the budget: for bounds, and for the first round of annealing, from which the next is planned.
BOUNDS_SHARE = 0.15
SECONDS_FOR_BOUNDS = 1.0
FIRST_ROUND_SHARE = 0.05
# A later round takes this share of what is left, as long as that is no less than the other share of the whole.
NEXT_ROUND_SHARE = 0.7
LEAST_LEFT = 0.2
LEAST_FOR_ANNEALING = 0.3
MOST_GROWTH = 1e6
# Dense models beyond this size are not annealed where the fewest states, as counted, would take so many times as long.
LARGE_DENSE, HOPELESS_TIMES = 8000, 3.0
# The length of the path is surveyed if that takes this share of what is left, as predicted, and no more than so many
# times as long.
SURVEY_SHARE, SURVEY_TIMES = 0.25, 2.0
# Paths from a subgraph and from independent spins are tried for this share of what is left each, through so many points
# at most; the former is taken if its log-weights vary so many times less. Where they vary by more than is harmless, it
# must also be so many times less than through a quarter of the points. Without the time to try it, a subgraph is for
# models that are warm: sqrt(sum_j J_ij^2), averaged over i as in ``parts/blocks.py``, up to this.
TRIAL_SHARE, MOST_POINTS_OF_TRIAL, TRIAL_MARGIN = 0.04, 512, 2.0
HARMLESS_SPREAD, TRIAL_TIMES, LEAST_FALL = 3.0, 4, 1.75
WARM = 2.0
# A round of annealing has so many runs of as many states as are swept together, or more; with states to spare more of
# both. Log-weights should vary by so much. The variance falls as this power of the number of points, if not faster.
STATES_TOGETHER, FEWEST_RUNS, RUNS_PER_ROUND = 64, 2, 4
SPREAD_WANTED, SPREAD_POWER = 0.25, 0.7
# Where log-weights would vary by more than this over the number of spins, within these limits, all of the time is for
# states that go both ways: of many spins log-weights are a sum of many parts, and as good as normal. Both ways take so
# many times as long.
HOPELESS_SPREAD_SPINS, LEAST_HOPELESS_SPREAD, MOST_HOPELESS_SPREAD = 40_000.0, 4.0, 40.0
BOTH_WAYS_TIMES = 2.6
# Marginals come from a pool of states that holds this share of P(x), if samples are there instead.
SHARE_FOR_MARGINALS = 0.99
# Marginals are averages over so many states, or as many as have this many spins.
STATES_FOR_MARGINALS, SPINS_FOR_MARGINALS = 20_000, 1e8
# Few spins freeze into few states, whose weights no number of points makes even: a round then has as many states as
# have this many spins, for these to be told apart by how often they are met.
FEWEST_SPINS = 32_768
# With so many families left, weights on the way there are rather to be believed than both ways that are out of
# equilibrium. The logarithm of an unbiased estimate is k too large with a probability of exp(-k) at most.
FEWEST_FAMILIES_LEFT, UNLIKELY_NATS = 5.0, 2.0
MOST_POINTS, FEWEST_POINTS_BOTH_WAYS = 1_000_000, 8
# Shares of what is left for expectation propagation, which is of little use where couplings are strong, and the fewest
# steps that are worth while; a step is timed with so many spins at most, or with more where it has one factorization.
EP_SHARE, STRONG_EP_SHARE = 0.5, 0.15
FEWEST_EP_STEPS, TIMED_EP_SPINS, TIMED_EP_SPINS_OF_MANY = 6.0, 300, 600
# It is not even timed where the operations of those steps, as counted, take so many times its share.
HOPELESS_EP_TIMES = 10.0
# Messages do not see a phase that is the mirror image of theirs, or as heavy: log 2 is two of this error.
LEAST_BP_ERROR = 0.35
# Where ep does not trust itself, or could not run, belief propagation has this share of what is left, if so many of its
# iterations fit in, of so many at most; with fewer spins than the last of these ep is the better one, if it runs.
BP_SHARE, FEWEST_BP_ITERATIONS, MOST_BP_ITERATIONS, FEWEST_BP_SPINS = 0.15, 20, 300, 300
BP_DAMPING, BP_TOL = 0.3, 1e-8
# Compressed elimination: its share of what is left, of which looking for an order may take another, at so many
# operations per spin; the first bond, doubled up to the most; states drawn; so many contractions' time in all. A spin
# has no more neighbors than this on average, nor than a share of all. With twice the bond, an answer that is not
# trusted must have an error so many times that of the bond before, or less. One as good as wanted is made better, to
# the second tolerance, where that takes a small share of its time. Once it has answered, annealing as a check has this
# share of the rest.
MPS_SHARE, MPS_PLAN_SHARE, MPS_PLAN_OPERATIONS, CHECK_SHARE = 0.6, 0.3, 2e4, 0.1
FIRST_BOND, MOST_BOND, MPS_SAMPLES, MPS_TIMES = 8, 1024, 500, 4.0
MOST_MPS_DEGREE, MOST_MPS_DENSITY, MPS_FALL = 12.0, 0.5, 0.5
# Squares of singular values that are discarded, relative to all of their bonds: so much is little, so much at first is
# hopeless, and with twice the bond it must be so many times less.
LITTLE_DISCARDED, MOST_DISCARDED, DISCARDED_FALL = 1e-3, 3.0, 0.1
MPS_TOL, CHEAP_MPS_SHARE = 1e-6, 0.3
# With more spins than this, no order is looked for where a layer of equal distance from a spin has more spins than so
# many times the root of their number: a lattice of two dimensions has twice the root, one of three some eight times.
MPS_SPINS_UNSEEN, MPS_LAYER_ROOTS = 5000, 10.0
# Where that fails and it is cold, sums over the heaviest frontier states, of a frontier so wide, and so many states;
# contractions have a share of the time before.
BONDS_SHARE, MOST_COLD_WIDTH, MOST_FRONTIER_STATES = 0.4, 60, 1_000_000
SEARCH_SHARE = 0.5
ELSEWHERE_SHARE = 0.05
LARGEST_POPULATION = 200_000
QUENCHES, QUENCHES_SHARE = 1000, 0.1
# With more spins than this, states are collected only where annealing has come to the same one twice.
MOST_SPINS_TO_COLLECT = 300
RESTARTS = 20
# Operations of exact methods per term of their sums: for log Z, and for marginals.
EXACT_OPERATIONS, EXACT_MEANS_OPERATIONS = 5.0, 30.0
# All exact answers together may take so many times the budget; what is predicted to take half a second is made anyway.
# Others are predicted from one of so many spins, as timed.
EXACT_TIMES = 10.0
CHEAP_OPERATIONS = 5e8
TIMED_EXACT_SPINS = 16
# The search for an elimination order may take this share of the budget: where an exact answer is wanted if it can be
# had, and where bounds only say that it could. They say so if they are farther apart than this.
EXACT_SEARCH_SHARE, EXACT_HINT_SHARE = 0.1, 0.05
CLOSED_BRACKET = 1e-6
# Samples are drawn from populations of this size at least.
FEWEST_TO_DRAW_FROM = 50
# What the other components share after an interrupt, and where the budget is spent.
SECONDS_AFTER_INTERRUPT, SECONDS_AT_LEAST = 0.01, 0.1

# --- the allowance of the bounders ----------------------------------------------------------------------------------

# No single bounder plans to use more than this share of what is left.
LARGEST_SHARE = 0.5
# Up to this mean degree the bounds that live on edges are the tight ones, beyond it those of the SDP.
MOST_SPARSE_DEGREE = 10.0
SDP_TOL = 1e-6
# Seconds of the SDP at 1,000 spins of a dense coupling and at 2,500 of a grid, with the powers by which they grow, as
# measured (docs/sdp.md).
DENSE_SDP_SECONDS, DENSE_SDP_POWER = 0.75, 2.2
SPARSE_SDP_SECONDS, SPARSE_SDP_POWER = 1.3, 1.6
SPARSE_DENSITY = 0.05
# Seconds per message of trw, per entry of the inverse that starts it to the power 3/2, per edge of one spanning tree.
MESSAGE_SECONDS, INVERSE_SECONDS, TREE_SECONDS = 1.5e-7, 4e-10, 1e-6
LEAST_ITERATIONS, MOST_ITERATIONS = 20, 1000
EDGE_STEPS = 5
# Seconds of wmbe per spin and edge before the first round, and of a round per table and per entry of a table.
BUCKET_SECONDS, TABLE_SECONDS, ENTRY_SECONDS = 4e-6, 6e-7, 4.5e-9
LEAST_IBOUND, MOST_IBOUND = 5, 18
# Its tables are the largest for which there is time for so many rounds. So many are made on one side before it is the
# other side's turn, and a side goes on while that narrows the bracket by this part. From below only brackets of so many
# nats per spin are pursued: those of colder models are wider than mean field's. An upper bound without a lower one is
# taken to be this part of what it has gained away from log Z.
FEW_ROUNDS, ROUNDS_AT_ONCE, LEAST_GAIN_OF_ROUNDS = 40, 6, 0.01
MOST_WIDTH_PER_SPIN, LOOSE_PART = 0.1, 0.03
# What takes no time by a coarse clock is taken for this.
TICK = 1e-9
# Random starts of mean field after the first, the share that they may take, and that of all starts without blocks.
BOUNDING_RESTARTS, RESTARTS_SHARE, SINGLE_SPINS_SHARE = 50, 0.2, 0.4
# Blocks of mean field: seconds per spin and per table entry of all sweeps; the first width, by how much they are
# widened at a time, and up to which width; sweeps at most, the change of means at which they end, and starts with the
# widest.
BLOCK_SECONDS, BLOCK_ENTRY_SECONDS = 1e-4, 4e-7
FIRST_BLOCK_WIDTH, BLOCK_WIDTH_STEP, MOST_BLOCK_WIDTH = 4, 4, 18
BLOCK_SWEEPS, BLOCK_TOL, BLOCK_RESTARTS = 20, 1e-3, 20
# A quick annealing: few temperatures, few states, and as many quenches.
QUICK_STEP = 1.0
FEWEST_STATES, MOST_ANNEALED = 20, 1000
STATES_SHARE = 0.3

# --- intervals with a stated probability, beside a bracket ----------------------------------------------------------

# Their share of the budget, and what states drawn from wmbe's bound may take of it: half of that for the bound. Tables
# are as large as leave time for so many rounds; so many states are drawn at most.
INTERVAL_SHARE, MINI_BUCKETS_SHARE = 0.5, 0.6
ROUNDS_FOR_DRAWING, MOST_ROUNDS_FOR_DRAWING, MOST_DRAWN = 30, 300, 1 << 20
# So many states bring the upper end below wmbe's bound by so much at most.
NATS_BY_DRAWING = 12.0
# Where both ends are this close, nothing else is asked; where what is proven is, relative to log Z, nothing is.
NARROW_INTERVAL, KNOWN_WIDTH = 0.02, 1e-9
# Annealing needs the time of so many points of a path with 64 states, and takes as many points as leave time for so
# many runs. Choosing blocks for it takes a second or two.
FEWEST_POINTS_FOR_INTERVAL, RUNS_FOR_INTERVAL, SECONDS_FOR_BLOCKS = 100, 16, 3.0
