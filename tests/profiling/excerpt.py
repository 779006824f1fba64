"""A few lines of a trace: 2 layers, hidden size 8, 3 sequences of 4 tokens, 15 words, 2 predictions a sequence.

Of the 17 outputs the sums are counted by hand:
  weights          32 + 32 + 480 + 480 + 60                              = 1084
  optimizer state  480                                                   =  480
  forward          384 + 384 + 96 + 192 + 384 + 192 + 24                 = 1656
  backward         384 + 480                                             =  864
  clip             480                                                   =  480
  update           480                                                   =  480
"""

TRACE = """\
SrcNode bert/embeddings/LayerNorm/beta 1
Output 0 32 256 GPU_0_bfc 1000
SrcNode bert/encoder/layer_0/attention/self/query/bias 1
Output 0 32 256 GPU_0_bfc 1001
SrcNode bert/embeddings/word_embeddings 1
Output 0 480 512 GPU_0_bfc 1002
SrcNode bert/embeddings/word_embeddings/read 1
Output 0 480 512 GPU_0_bfc 1003
SrcNode cls/predictions/output_bias 1
Output 0 60 256 GPU_0_bfc 1003
SrcNode bert/embeddings/word_embeddings/adam_m 1
Output 0 480 512 GPU_0_bfc 1004
SrcNode group_deps 0
SrcNode bert/encoder/layer_0/attention/self/query/MatMul 1
Output 0 384 512 GPU_0_bfc 1100
SrcNode bert/encoder/layer_1/attention/self/query/MatMul 1
Output 0 384 512 GPU_0_bfc 1110
SrcNode bert/pooler/dense/MatMul 1
Output 0 96 256 GPU_0_bfc 1120
SrcNode bert/encoder/mul 1
Output 0 192 256 GPU_0_bfc 1121
SrcNode bert/encoder/layer_0/attention/self/Softmax 1
Output 0 384 512 GPU_0_bfc 1122
SrcNode cls/predictions/transform/dense/MatMul 1
Output 0 192 256 GPU_0_bfc 1123
SrcNode cls/seq_relationship/MatMul 2
Output 0 24 256 GPU_0_bfc 1124
Output 1 0 0  1124
SrcNode gradients/bert/encoder/layer_1/attention/self/query/MatMul_grad/MatMul 1
Output 0 384 512 GPU_0_bfc 1200
SrcNode gradients/AddN_7 1
Output 0 480 512 GPU_0_bfc 1300
SrcNode clip_by_global_norm/mul_1 1
Output 0 480 512 GPU_0_bfc 1400
SrcNode Mul_270 1
Output 0 480 0 cpu_pool 1500
"""
NODES = 18
OUTPUTS = 17
PHASES = {"weights": 1084, "optimizer_state": 480, "forward": 1656, "backward": 864, "clip": 480, "update": 480}
REQUESTED = 5044
ALLOCATED = 6400  # 7 of 256, 9 of 512, one of 0: counted by hand too
SLACK = ALLOCATED - (REQUESTED - 480)
