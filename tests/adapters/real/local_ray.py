"""A Ray cluster of this process alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import ray


@contextmanager
def local_ray(num_cpus: int) -> Iterator[None]:
    """Start Ray here, never joining what somebody else has started, and shut it down."""
    ray.init(
        address="local",
        num_cpus=num_cpus,
        _node_ip_address="127.0.0.1",
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100 << 20,
    )
    try:
        yield
    finally:
        ray.shutdown()
