"""Support for all parts of the package: checks of options, progress, threads, interrupts."""
