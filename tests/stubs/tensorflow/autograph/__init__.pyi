from tensorflow.autograph import experimental as experimental
