"""The environments inside other libraries: one module a library, named after it, on one shared core.

Each library is an extra of its own (`pip install 'arl-gym[skyrl]'`), and only its module imports it.
"""
