from tests.estimator.conftest import pretrained as pretrained
from tests.operations.conftest import call as call
from tests.operations.conftest import called as called
