from apache_beam import PTransform

class Write(PTransform):
    def __init__(self, sink: object) -> None: ...
