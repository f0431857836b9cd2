"""Reads dumps of msprobe (mindstudio-probe 1.0 to 26.x), PyTorch and MindSpore."""
