"""Mini-buckets: how functions are divided, the passes over their tables, and their tightening."""
