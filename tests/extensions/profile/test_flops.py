import pytest

from bert_tf.extensions.profile.flops import Product, product_of, tensor_core_obstacle, uses_tensor_cores


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "product", "flops"),
    [
        ("MatMul", [(4, 8), (8, 16)], (4, 16), (1, 4, 8, 16), 1024),
        ("MatMul", [(8, 4), (8, 16)], (4, 16), (1, 4, 8, 16), 1024),  # the first is transposed
        ("MatMul", [(4, 8), (16, 8)], (4, 16), (1, 4, 8, 16), 1024),  # the second
        ("_FusedMatMul", [(4, 8), (8, 16), (16,)], (4, 16), (1, 4, 8, 16), 1024),  # and a bias
        ("_MklNativeFusedMatMul", [(4, 8), (8, 16), None], (4, 16), (1, 4, 8, 16), 1024),
        ("BatchMatMulV2", [(2, 3, 5, 7), (2, 3, 5, 7)], (2, 3, 5, 5), (6, 5, 7, 5), 2100),
        ("_MklBatchMatMulV2", [(2, 3, 5, 7), (2, 3, 7, 4)], (2, 3, 5, 4), (6, 5, 7, 4), 1680),
        ("_FusedBatchMatMulV2", [(3, 5, 7), (7, 4)], (3, 5, 4), (3, 5, 7, 4), 840),  # one factor for the whole batch
        ("MatMul", [(0, 8), (8, 16)], (0, 16), (1, 0, 0, 16), 0),
    ],
)
def test_sizes_and_operations(kind, inputs, output, product, flops):
    counted = product_of(kind, inputs, output)
    assert (counted, counted.flops) == (Product(*product), flops)


@pytest.mark.parametrize(
    ("kind", "inputs", "output"),
    [
        ("Mul", [(4, 8), (4, 8)], (4, 8)),
        ("MatMulGradient", [(4, 8), (8, 16)], (4, 16)),
        ("MatMul", [None, (8, 16)], (4, 16)),
        ("MatMul", [(4, 8), (8, 16)], None),
        ("MatMul", [(4, 8), (7, 16)], (4, 16)),  # of another step: they do not fit
        ("MatMul", [(3, 8), (8, 16)], (4, 16)),
    ],
)
def test_nothing_is_guessed(kind, inputs, output):
    assert product_of(kind, inputs, output) is None


@pytest.mark.parametrize(
    ("dtype", "sizes", "obstacle"),
    [
        ("float16", (64, 768, 3072), ""),
        ("bfloat16", (8, 8, 8), ""),
        ("float32", (64, 768, 3072), "float32"),
        ("float16", (1763, 768, 3072), "M = 1763: not a multiple of 8"),
        ("bfloat16", (64, 30, 30522), "K = 30, N = 30522: not a multiple of 8"),
        ("float16", (64, 768, 2), "N = 2: not a multiple of 8"),
    ],
)
def test_what_keeps_a_product_from_them(dtype, sizes, obstacle):
    assert tensor_core_obstacle(dtype, Product(1, *sizes)) == obstacle
    assert str(Product(6, *sizes)) == "6 x [{0}, {1}] [{1}, {2}]".format(*sizes)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn", True),
        ("volta_h884gemm_64x64_ldg8_nn", True),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", True),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_relu_f2f_stages_64x3_tn", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4>", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage3_warpsize2x1x2_tensor16x8x8", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4", False),
        ("volta_sgemm_128x64_nn", False),
        ("ampere_sgemm_32x128_tn", False),
        ("void splitKreduce_kernel<32, 16, int, float>", False),
        ("void tensorflow::functor::ApplyAdamKernel<float>", False),
    ],
)
def test_who_uses_them_by_the_name_of_the_kernel(kernel, expected):
    assert uses_tensor_cores(kernel) is expected
