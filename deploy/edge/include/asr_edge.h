/* Speech to text from a bundle (docs/bundle.md), for programs in C and C++.
 *
 * Link with -lasr_edge. ONNX Runtime is loaded when the first bundle is opened: the file that
 * ORT_DYLIB_PATH names, else ../lib/libonnxruntime.so.1 beside the program, else what the system
 * finds.
 *
 * Threads: a handle belongs to one thread at a time; different handles may work side by side.
 * Strings that come back belong to the handle, are UTF-8, and last until its next call.
 *
 * Codes: 0 done, 2 usage, 3 bad audio, 4 bad bundle or network, 5 the system would not let us,
 * 7 ONNX Runtime is missing, 70 our bug: docs/exit-codes.md.
 *
 * Telemetry: from 1.29 on ONNX Runtime writes a database below ~/.cache and uploads events unless
 * ORT_DISABLE_TELEMETRY=1 is in the environment before it is loaded. A library must not change the
 * environment of a program that may have threads, so asr_edge_open refuses (2) where the variable
 * is not there: put it there where your program starts, as the example does.
 */
#ifndef ASR_EDGE_H
#define ASR_EDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct asr_edge asr_edge;

/* "0.1.0"; lasts for ever. */
const char *asr_edge_version(void);

/* Load a bundle; threads of 0 takes the fast cores, at most 4. *edge is a handle in any case but
 * that of a null pointer: after a failure it only tells asr_edge_error, and must be closed. */
int asr_edge_open(const char *bundle, int threads, asr_edge **edge);

/* Hear count samples of 16 bits, one channel. language: NULL, or one the model knows, such as "en";
 * itn: not 0 for digits and punctuation. */
int asr_edge_transcribe(asr_edge *edge, const int16_t *samples, size_t count, uint32_t rate_hz,
                        const char *language, int itn);

/* Hear a WAV file of any length. */
int asr_edge_transcribe_file(asr_edge *edge, const char *path, const char *language, int itn);

/* What was heard last: the text, and all of it as JSON (docs/transcript.schema.json). Empty before
 * the first call and after one that failed. */
const char *asr_edge_text(const asr_edge *edge);
const char *asr_edge_json(const asr_edge *edge);

/* Why the last call failed, one line; empty if it did not. */
const char *asr_edge_error(const asr_edge *edge);

/* Free the handle and its strings; NULL is nothing to free. */
void asr_edge_close(asr_edge *edge);

#ifdef __cplusplus
}
#endif

#endif
