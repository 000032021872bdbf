"""What runs in the sandbox's own processes: the template, and the children that it forks.

Standard library and ctypes only. `boot.py` loads these modules under the package name `jail`, so that nothing
else of `arl_gym` is in the memory that programs can see; they import one another relatively.
"""
