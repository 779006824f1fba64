"""Jobs beyond one machine: Apache Beam pipelines and Spark functions."""
