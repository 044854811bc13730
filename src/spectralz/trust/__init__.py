"""When an answer is trusted: evidence in, judgment out. Pure functions, and every constant that they use."""
