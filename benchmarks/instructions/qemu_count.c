/* QEMU plugin: how many A64 instructions a program ran, and of which kind: all, those that the
 * vector pipes do (vector and floating point), loads and stores, dot products of bytes.
 * Debian packages no header for plugins, so the part of qemu-plugin.h (API version 1) that is used
 * here is declared here.
 * cc -shared -fPIC -o qemu_count.so qemu_count.c
 * qemu-aarch64 -plugin ./qemu_count.so -d plugin PROGRAM */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(
    struct qemu_plugin_tb *, int operation, void *counter, uint64_t immediate);
extern void qemu_plugin_register_atexit_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
extern void qemu_plugin_outs(const char *);

enum { ADD_U64 = 0 };
enum { ALL, VECTOR, MEMORY, DOT, KINDS };

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t executed[KINDS];

/* Arm ARM C4.1: bits 28 to 25 tell the group; SDOT and UDOT, by vector and by element. */
static void classify(uint32_t code, uint64_t *count)
{
    count[ALL] += 1;
    count[VECTOR] += (code >> 25 & 7) == 7;
    count[MEMORY] += (code >> 25 & 5) == 4;
    count[DOT] += (code & 0x9fe0fc00) == 0x0e809400 || (code & 0x9fc0f400) == 0x0f80e000;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    uint64_t count[KINDS] = {0};
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        uint32_t code;
        memcpy(&code, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, i)), sizeof code);
        classify(code, count);
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (count[kind])
            qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &executed[kind], count[kind]);
}

static void tell(qemu_plugin_id_t id, void *unused)
{
    char line[160];
    (void)id;
    (void)unused;
    snprintf(line, sizeof line,
             "instructions: %" PRIu64 " vector: %" PRIu64 " memory: %" PRIu64 " dot: %" PRIu64 "\n",
             executed[ALL], executed[VECTOR], executed[MEMORY], executed[DOT]);
    qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(
    qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, tell, NULL);
    return 0;
}
