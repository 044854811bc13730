"""What pytest leaves out where an optional package is not installed: examples of modules that import JAX."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") else ["src/spectralz/jax.py", "src/spectralz/kernels/device/*.py"]
