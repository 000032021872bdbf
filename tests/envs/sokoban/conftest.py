import pytest


@pytest.fixture(scope="session")
def real_levels(shared_data):
    """The folder of real level files beside the checkout."""
    return shared_data / "sokoban"
