"""Custom CPU kernels: C++ operations compiled and checked on the machine."""
