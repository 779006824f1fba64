"""Kernels of one's own for the CPU: C++ operations that are compiled on the machine, and checked there."""
