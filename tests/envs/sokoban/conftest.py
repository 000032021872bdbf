from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_levels():
    """The folder of real level files beside the checkout."""
    folder = Path(__file__).parents[4] / "shared" / "data" / "sokoban"
    if not folder.is_dir():
        pytest.skip("the real level files are not beside this checkout (shared/data/sokoban)")
    return folder
