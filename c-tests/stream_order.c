/* Two threads print to one stream. Who comes first is told by what comes out: of memory, a pipe, a file that is read afterwards; or two
 * threads read from one stream. On the terminal, and in a file that nobody reads, nobody can tell: N threads are one execution. */
#include "t.h"

static FILE *stream;
static int got[2];

static void *prints(void *who)
{
    fprintf(stream, "%s", (char *)who);
    return NULL;
}

static void *reads(void *to)
{
    *(int *)to = getc(stream);
    return NULL;
}

static void *lines(void *unused)
{
    for (int i = 0; i < 3; i++)
        fprintf(stream, "line %d\n", i);
    return unused;
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/stream-order-XXXXXX", text[8] = "", *memory = NULL;
    size_t size;
    int ends[2] = {-1, -1}, fd = -1;
    int in_memory = arg_is(argc, argv, "memory"), in_pipe = arg_is(argc, argv, "pipe");
    int file = arg_is(argc, argv, "file"), unread = arg_is(argc, argv, "unread"), input = arg_is(argc, argv, "input");

    if (in_pipe || input)
        MUST(pipe(ends));
    if (file || unread)
        fd = mkstemp(name);
    if (input)
        MUST(write(ends[1], "ab", 2) != 2);
    stream = in_memory          ? open_memstream(&memory, &size)
             : in_pipe          ? fdopen(ends[1], "w")
             : input            ? fdopen(ends[0], "r")
             : file || unread   ? fdopen(fd, "w")
                                : stdout;
    if (stream == NULL)
        abort();
    if (stream == stdout || unread) {
        pthread_t t[4];
        for (int i = 0; i < 4; i++)
            t[i] = go(lines, NULL);
        for (int i = 0; i < 4; i++)
            join(t[i]);
        return 0;
    }
    pthread_t t1 = go(input ? reads : prints, input ? (void *)&got[0] : "a");
    pthread_t t2 = go(input ? reads : prints, input ? (void *)&got[1] : "b");
    join(t1);
    join(t2);
    if (input) {
        text[0] = (char)got[0];
    } else {
        MUST(fclose(stream));
        if (in_memory)
            strcpy(text, memory);
        if (in_pipe)
            MUST(read(ends[0], text, 2) != 2);
        if (file) {
            stream = fopen(name, "r");
            if (stream == NULL || fgets(text, sizeof text, stream) == NULL)
                abort();
        }
    }
    assert(text[0] == 'a' && "the first thread came first");
    return 0;
}
