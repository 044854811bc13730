"""Bounds by mini-buckets, and intervals from states drawn from them."""
