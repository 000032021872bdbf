"""`python -m arl_gym.cli`, where the script is not on the path."""

import sys

from arl_gym.cli import main

sys.exit(main())
