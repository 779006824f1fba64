"""Jobs past one machine: pipelines of Apache Beam, functions for Spark."""
