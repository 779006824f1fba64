from typing import Any

from tensorflow import Operation

class BulkSaverBuilder:
    def _AddShardedRestoreOps(self, *_: Any) -> Operation: ...
