"""What things cost: the one table by which work is planned, and charged if operations are counted.

Costs are operations, of which one core does about 1e9 per second, unless a name says seconds or nanoseconds. They were
measured on one core of a present-day machine. They only decide what is tried, never how a result is judged.
"""

from __future__ import annotations

# --- sweeps over a state (sampling/engines, sampling/moves) ---------------------------------------------------------

# A spin update, with its random number and exponential, and an entry of its row.
SPARSE_UPDATE, SPARSE_ENTRY = 1.5, 0.2
# A term of three and more spins, for each of its spins.
TERM_ENTRY = 0.3
DENSE_UPDATE, DENSE_ENTRY = 3.0, 0.03
# The same in double precision, entries as far as spins flip; on sparse graphs, how many times as long a sweep takes.
DOUBLE_UPDATE, DOUBLE_ENTRY, DOUBLE_SPARSE_TIMES = 25.0, 0.25, 6.0
# A spin that is drawn with its side, one that is summed out in a weight, and an entry of W in the two products.
SIDE_DRAW, SIDE_SUM, SIDE_ENTRY = 1.1, 2.8, 0.034
# The same for single flips: a flip, an entry of W, and a spin that is summed out.
FLIP, FLIP_ENTRY, FLIP_SUM = 60.0, 0.42, 6.0
# On an H200 with 1,024 states: a spin that waits for its turn, one drawn with its side, an entry of the coupling, and
# one that a single flip reads.
DEVICE_TURN, DEVICE_DRAW, DEVICE_ENTRY, DEVICE_FLIP_ENTRY = 0.45, 0.15, 1.5e-5, 4e-3
# On a sparse graph there: a spin and an entry of its row, with the energy after the sweep; and a color of all states.
DEVICE_UPDATE, DEVICE_NEIGHBOR, DEVICE_COLOR = 4e-3, 1e-3, 2.5e4
# A move of clusters, per spin and per entry of the coupling.
CLUSTER_SPIN, CLUSTER_ENTRY = 20.0, 5.0
# The weight of a state at a point of the path.
WEIGHT_AT_POINT = 40.0
# Means: an entry of the coupling of a state, for fields and for pairs.
MEANS_ENTRY = 3.0

# --- states (sampling/quench, pool, subgraph) -----------------------------------------------------------------------

# An entry of the coupling that is summed in double precision, in a dense and a sparse coupling.
FIELD_ENTRY, SPARSE_FIELD_ENTRY = 1.0, 2.0
# Per spin of a state in a lookup, per entry of the coupling in its log-weight, per log-weight examined when choosing
# which states to expand, and per coupling of a flipped spin to a summed-out spin.
POOL_SPIN, POOL_ENTRY, POOL_LOOK, POOL_FLIP = 4.0, 0.3, 20.0, 3.0
# Per state that is searched for, what is not compiled.
SEARCHED_STATE = 2e5
# Per spin that a step of tabu search looks at, and per coupling of the spin that it flips.
TABU_SPIN, TABU_ENTRY = 2.0, 1.0
# Per spin and per coupling of a sweep of a state that is cooled, averaged over the temperatures.
COOL_SPIN, COOL_ENTRY = 8.0, 0.2
# Tables of a subgraph: per entry, and per coupling of a spin and spin of its bag.
SUBGRAPH_ENTRY, SUBGRAPH_COUPLING = 25.0, 10.0

# --- exact sums and elimination -------------------------------------------------------------------------------------

# Per term of an exact sum: for log Z, and for marginals.
EXACT_TERM, EXACT_MEANS_TERM = 5.0, 30.0
# A planar graph per spin, to draw it and to order its faces; and its sums per n^1.5: for log Z, and with means.
PLANAR_SPIN, PLANAR_SUM = 2e5, (500.0, 3000.0)
# Per node of a quadrature: for each spin, and with means for each pair; if all directions are positive, and if not.
NODE_SPIN, NODE_PAIR = (15.0, 80.0), (0.3, 3.5)
# Per table entry and child of a pass of a count modulo a number.
RESIDUE_ENTRY = 8.0
# In nanoseconds: the search for an order per spin squared, a table entry, a try of an annealed order, and its words.
ORDER_SEARCH_NANOSECONDS, TABLE_ENTRY_NANOSECONDS = 100, 6
ORDER_TRY_NANOSECONDS, ORDER_WORD_NANOSECONDS = 100, 8
# The search for the order of a compressed elimination per spin, and a draw per tensor entry and state.
COMPRESSED_PLAN_SPIN, COMPRESSED_DRAW = 2e4, 2.0
# Heaviest frontier states: per extended state, and per entry of a mini-bucket's table.
FRONTIER_STATE, FRONTIER_ENTRY = 150.0, 20.0

# --- messages, mean field, expectation propagation ------------------------------------------------------------------

# Per message of an iteration, once for the layout, and per edge to find the signs of an attractive model.
MESSAGE, MESSAGE_LAYOUT, SIGNS_EDGE = 70.0, 900.0, 100.0
# A sweep of mean field, and a step of Lanczos, per spin, beside one per entry of the coupling.
MEAN_FIELD_SPIN, LANCZOS_SPIN = 60.0, 100.0
# A sweep of mean field with blocks, both passes, per table entry and per spin; the partition, for few and many spins.
BLOCKS_ENTRY, BLOCKS_SPIN = 20.0, 300.0
PARTITION_SPIN_OF_FEW, PARTITION_SPIN = 5e4, 2e4
# A step of expectation propagation per n^3 and per n^2; then the same for steps with only one factorization.
PROPAGATION_OF_FEW, PROPAGATION_OF_MANY = (0.6, 400.0), (0.015, 30.0)

# --- bounds ---------------------------------------------------------------------------------------------------------

# A round of mini-buckets per table entry. A state drawn from them per spin: table lookups, and a logarithm and a random
# number.
BUCKET_ENTRY, BUCKET_LOOKUP, BUCKET_DRAW = 30.0, 0.7, 15.0
# Seconds of wmbe per spin and edge before the first round, and of a round per table and per entry of a table.
BUCKET_SECONDS, TABLE_SECONDS, ENTRY_SECONDS = 4e-6, 6e-7, 4.5e-9
# Seconds of the SDP at 1,000 spins of a dense coupling and at 2,500 of a grid, with the powers by which they grow, as
# measured (docs/sdp.md).
DENSE_SDP_SECONDS, DENSE_SDP_POWER = 0.75, 2.2
SPARSE_SDP_SECONDS, SPARSE_SDP_POWER = 1.3, 1.6
# Seconds per message of trw, per entry of the inverse that starts it to the power 3/2, per edge of one spanning tree.
MESSAGE_SECONDS, INVERSE_SECONDS, TREE_SECONDS = 1.5e-7, 4e-10, 1e-6
# Blocks of mean field: seconds per spin and per table entry of all sweeps.
BLOCK_SECONDS, BLOCK_ENTRY_SECONDS = 1e-4, 4e-7
