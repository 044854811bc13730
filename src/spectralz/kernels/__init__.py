"""Arrays in, arrays out: the numerical work, knowing nothing of models, options or results."""
