"""The version of gpulab."""

VERSION = "0.1.0"
