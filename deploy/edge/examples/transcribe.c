/* cc transcribe.c -lasr_edge -o transcribe; ./transcribe BUNDLE CLIP.wav
 *
 * Loads a bundle once, hears a file, then a second of silence from memory. */
#include <asr_edge.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static const int16_t silence[16000] = {0};
    asr_edge *edge = NULL;
    int code;

    if (argc != 3) {
        fprintf(stderr, "usage: transcribe BUNDLE CLIP.wav\n");
        return 2;
    }
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);
    code = asr_edge_open(argv[1], 0, &edge);
    if (code == 0)
        code = asr_edge_transcribe_file(edge, argv[2], NULL, 0);
    if (code == 0) {
        printf("%s\n", asr_edge_text(edge));
        code = asr_edge_transcribe(edge, silence, 16000, 16000, NULL, 0);
    }
    if (code == 0)
        printf("%s\n", asr_edge_json(edge));
    else
        fprintf(stderr, "transcribe: %s\n", asr_edge_error(edge));
    asr_edge_close(edge);
    return code;
}
