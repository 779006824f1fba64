from tests.extensions.sweep.conftest import _without_page as _without_page
