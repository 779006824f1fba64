from tests.estimator.conftest import pretrained as pretrained
