"""Mini-buckets: dividing functions, the passes over their tables, and tightening the bounds."""
