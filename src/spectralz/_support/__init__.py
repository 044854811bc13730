"""What every part may lean on: checks of options, progress, threads, interrupts."""
