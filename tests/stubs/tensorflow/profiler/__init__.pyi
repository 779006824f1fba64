from tensorflow.profiler import experimental as experimental
