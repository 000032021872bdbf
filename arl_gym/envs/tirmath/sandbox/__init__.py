"""Runs programs."""
from arl_gym.envs.tirmath.sandbox.sandbox import Sandbox
