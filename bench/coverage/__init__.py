"""How often intervals hold the truth, and tests err, on populations whose SmoothECE is known."""

import os

# One thread a process: the cells themselves run side by side. NumPy reads this when it is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
