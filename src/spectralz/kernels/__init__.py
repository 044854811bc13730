"""The numerical work on arrays, independent of models, options and results."""

UNIT_ROUNDOFF = 2.0**-53
