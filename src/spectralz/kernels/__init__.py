"""Arrays in, arrays out: the numerical work, knowing nothing of models, options or results."""

UNIT_ROUNDOFF = 2.0**-53
