/* What one core of this machine can do: multiply bytes, multiply floats, read memory.
 *
 *     limit SECONDS    prints int8_gops, fp32_gflops, read_gbytes_per_s as one JSON object
 *
 * Twelve independent accumulators hide the latency of the multipliers (4 cycles, 2 a cycle).
 * int8: vpdpbusd where the CPU has AVX-512 VNNI or AVX-VNNI; 0 where it has neither. Other CPUs
 * than x86: 0 for both.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 20000

/* CPU seconds: what a core does while it is ours, on a busy machine too. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#if defined(__x86_64__)
#if defined(__AVX512F__)
#define WIDTH 16
typedef __m512 lanes;
#define ONE _mm512_set1_ps(1e-3f)
#if defined(__AVX512VNNI__)
#define DOT "vpdpbusd"
#endif
#else
#define WIDTH 8
typedef __m256 lanes;
#define ONE _mm256_set1_ps(1e-3f)
#if defined(__AVXVNNI__)
#define DOT "{vex} vpdpbusd"
#endif
#endif

#define TWELVE(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define FIRST(i) s##i = a,
#define FMA(i) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define BYTES(i) __asm__ volatile(DOT " %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));

/* Many of an instruction on twelve registers. A function of its own: nothing lives across a call
 * here, so nothing is spilled. */
#define BLOCK(name, INSTRUCTION)                              \
    static __attribute__((noinline)) void name(void) {        \
        lanes a = ONE, b = ONE, TWELVE(FIRST) unused = a;     \
        (void)unused;                                         \
        for (int r = 0; r < ROUNDS; r++) {                    \
            TWELVE(INSTRUCTION)                               \
        }                                                     \
    }

BLOCK(floats, FMA)
#ifdef DOT
BLOCK(bytes, BYTES)
#endif
#endif

/* 1e9 operations per second of a block whose instructions do so many each. */
__attribute__((unused)) static double rate(void (*block)(void), int operations, double seconds) {
    double start = now(), passed;
    uint64_t blocks = 0;
    do {
        block();
        blocks++;
        passed = now() - start;
    } while (passed < seconds);
    return (double)blocks * ROUNDS * 12 * operations / passed / 1e9;
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
    double seconds = argc > 1 ? atof(argv[1]) : 1.0, int8 = 0, fp32 = 0;
#ifdef DOT
    int8 = rate(bytes, 8 * WIDTH, seconds);
#endif
#ifdef WIDTH
    fp32 = rate(floats, 2 * WIDTH, seconds);
#endif
    printf("{\"int8_gops\": %.1f, \"fp32_gflops\": %.1f, \"read_gbytes_per_s\": %.2f}\n", int8,
           fp32, reading(seconds));
}
