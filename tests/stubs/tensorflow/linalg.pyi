from collections.abc import Sequence

from tensorflow import Tensor

def global_norm(t_list: Sequence[Tensor]) -> Tensor: ...
