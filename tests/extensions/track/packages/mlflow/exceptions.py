class MlflowException(Exception):  # noqa: N818  (MLflow's name)
    @property
    def error_code(self):
        return str(self)
