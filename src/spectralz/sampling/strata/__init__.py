"""Phases as strata with runs of their own, which ratios of two models and the method ``states`` still use."""
