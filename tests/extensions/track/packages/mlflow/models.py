from collections import namedtuple

ModelSignature = namedtuple("ModelSignature", "inputs outputs")
