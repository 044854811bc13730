"""What several methods assemble: more than a kernel, since it knows models and clocks, and no method by itself."""
