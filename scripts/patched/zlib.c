// zlib's test, as its own example does it, on standard input: each level and strategy, by a second thread, too; flushes, dictionaries, a
// damaged stream, checksums. Prints what comes out.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MOST (1 << 17)
static unsigned char text[MOST];
static size_t length;

struct work { int first; uLong sums[64]; int n; };

static uLong through(int level, int strategy, int flush, const char *dictionary) {
    size_t room = length + length / 8 + 4096;
    unsigned char *packed = malloc(room), *back = calloc(1, length + 1);
    z_stream in = {0}, out = {0};
    if (deflateInit2(&in, level, Z_DEFLATED, level == 3 ? 9 : 15, 8, strategy)) abort();
    if (dictionary) deflateSetDictionary(&in, (const unsigned char *)dictionary, strlen(dictionary));
    in.next_out = packed, in.avail_out = room;
    for (size_t at = 0; at < length; at += 10007) {
        size_t n = length - at < 10007 ? length - at : 10007;
        in.next_in = text + at, in.avail_in = n;
        if (deflate(&in, at + n == length ? Z_FINISH : flush) < 0) abort();
    }
    uLong size = in.total_out, sum = adler32(crc32(0, packed, size), packed, size);
    deflateEnd(&in);
    inflateInit2(&out, 15);
    out.next_in = packed, out.avail_in = size;
    out.next_out = back, out.avail_out = length;
    int result = inflate(&out, Z_NO_FLUSH);
    if (result == Z_NEED_DICT) {
        inflateSetDictionary(&out, (const unsigned char *)dictionary, strlen(dictionary));
        result = inflate(&out, Z_FINISH);
    }
    inflateEnd(&out);
    if (result != Z_STREAM_END || memcmp(text, back, length)) abort();
    // A damaged one is found.
    packed[size / 2] ^= 0x55;
    uLong restored = length;
    int damaged = uncompress(back, &restored, packed, size);
    free(packed);
    free(back);
    return sum * 31 + size + (damaged == Z_OK);
}

static void *run(void *argument) {
    struct work *work = argument;
    for (int level = work->first; level <= 9; level += 2)
        for (int strategy = 0; strategy < 4; strategy++)
            work->sums[work->n++] = through(level, strategy, strategy == 2 ? Z_FULL_FLUSH : Z_NO_FLUSH, strategy == 1 ? "of memory the 1" : NULL);
    return NULL;
}

int main(void) {
    static struct work works[2] = {{.first = 0}, {.first = 1}};
    pthread_t thread;
    length = fread(text, 1, MOST / 4, stdin);
    pthread_create(&thread, NULL, run, &works[1]);
    run(&works[0]);
    pthread_join(thread, NULL);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < works[k].n; i++) printf("%lx%c", works[k].sums[i], i % 4 == 3 ? '\n' : ' ');
    printf("%lx\n", crc32(adler32(1, text, length), text, length));
}
