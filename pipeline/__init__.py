"""Pipeline: finds shards, runs the questions on them, and gives the answers."""

import os

# NumPy's, which spin from its import on; nothing here multiplies matrices
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
