"""
The diagonal that proves a bound
================================

Text.
"""

# %%
import spectralz as sz

print(sz.log_z(sz.generators.chain(n=5, strength=0.2)))
