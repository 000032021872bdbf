"""Settings of Ray, which it reads once: before any test module imports it."""

import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"  # else it writes a token into the home folder
# Else whatever runs beside the tests starves its workers.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's spelling
