/* What one core of this machine can do: multiply bytes, multiply floats, read memory.
 *
 *     limit SECONDS    prints int8_gops, fp32_gflops, read_gbytes_per_s as one JSON object
 *
 * Twelve independent accumulators hide the latency of the multipliers (4 cycles, 2 a cycle).
 * int8: vpdpbusd where the CPU has AVX-512 VNNI or AVX-VNNI; 0 where it has neither.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANES 12
#define ROUNDS 20000

/* CPU seconds: what a core does while it is ours, on a busy machine too. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#if defined(__AVX512F__)
#define WIDTH 16
typedef __m512 floats;
typedef __m512i ints;
#define FMA _mm512_fmadd_ps
#define ONE _mm512_set1_ps(1e-3f)
#define INTS _mm512_set1_epi8(1)
#if defined(__AVX512VNNI__)
#define DOT _mm512_dpbusd_epi32
#endif
#else
#define WIDTH 8
typedef __m256 floats;
typedef __m256i ints;
#define FMA _mm256_fmadd_ps
#define ONE _mm256_set1_ps(1e-3f)
#define INTS _mm256_set1_epi8(1)
#if defined(__AVXVNNI__)
#define DOT _mm256_dpbusd_avx_epi32
#endif
#endif

/* Operations per second of STEP on LANES accumulators; an empty asm keeps each result alive. */
#define RATE(type, zero, STEP, per_step)                                                     \
    do {                                                                                     \
        type sum[LANES];                                                                     \
        for (int i = 0; i < LANES; i++) sum[i] = zero;                                       \
        double start = now(), passed;                                                        \
        uint64_t rounds = 0;                                                                 \
        do {                                                                                 \
            for (int r = 0; r < ROUNDS; r++)                                                 \
                _Pragma("GCC unroll 12") for (int i = 0; i < LANES; i++) {                   \
                    sum[i] = STEP;                                                           \
                    __asm__ volatile("" : "+v"(sum[i]));                                     \
                }                                                                            \
            rounds += ROUNDS;                                                                \
            passed = now() - start;                                                          \
        } while (passed < seconds);                                                          \
        return (double)rounds * LANES * (per_step) / passed / 1e9;                           \
    } while (0)

static double fp32(double seconds) {
    floats a = ONE, b = ONE;
    __asm__ volatile("" : "+v"(a), "+v"(b));
    RATE(floats, a, FMA(a, b, sum[i]), 2 * WIDTH);
}

static double int8(double seconds) {
#ifdef DOT
    ints a = INTS, b = INTS;
    __asm__ volatile("" : "+v"(a), "+v"(b));
    RATE(ints, a, DOT(sum[i], a, b), 8 * WIDTH);
#else
    (void)seconds;
    return 0;
#endif
}

static double reading(double seconds) {
    size_t count = (size_t)256 << 20 >> 3;
    uint64_t *memory = malloc(count * 8), sum = 0;
    memset(memory, 1, count * 8);
    double start = now(), passed;
    uint64_t rounds = 0;
    do {
        for (size_t i = 0; i < count; i++) sum += memory[i];
        __asm__ volatile("" : "+r"(sum));
        rounds++;
        passed = now() - start;
    } while (passed < seconds);
    free(memory);
    return (double)rounds * count * 8 / passed / 1e9;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    printf("{\"int8_gops\": %.1f, \"fp32_gflops\": %.1f, \"read_gbytes_per_s\": %.2f}\n",
           int8(seconds), fp32(seconds), reading(seconds));
}
