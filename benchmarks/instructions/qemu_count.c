/* QEMU plugin: how many guest instructions a program ran. Debian packages no header for plugins,
 * so the part of qemu-plugin.h (API version 1) that is used here is declared here.
 * cc -shared -fPIC -o qemu_count.so qemu_count.c
 * qemu-aarch64 -plugin ./qemu_count.so -d plugin PROGRAM */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(
    struct qemu_plugin_tb *, int operation, void *counter, uint64_t immediate);
extern void qemu_plugin_register_atexit_cb(
    qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
extern void qemu_plugin_outs(const char *);

enum { ADD_U64 = 0 };

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t executed;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(
        block, ADD_U64, &executed, qemu_plugin_tb_n_insns(block));
}

static void tell(qemu_plugin_id_t id, void *unused)
{
    char line[64];
    (void)id;
    (void)unused;
    snprintf(line, sizeof line, "instructions: %" PRIu64 "\n", executed);
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
