/* A thread holds a stream and waits for a mutex, whose owner prints.
 * buggy: by flockfile; fixed: mutex first.
 * cookie: the stream is the program's own (fopencookie), its write function takes the mutex; nobody calls flockfile.
 * pipe: a stream on a pipe that is full; who would read it prints to the same stream first. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static FILE *stream;
static int ends[2];

static ssize_t writes(void *unused, const char *text, size_t n)
{
    (void)unused, (void)text;
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return (ssize_t)n;
}

static void *holds(void *fixed)
{
    if (fixed)
        MUST(pthread_mutex_lock(&m));
    flockfile(stream);
    if (!fixed)
        MUST(pthread_mutex_lock(&m));
    fprintf(stream, "%d\n", 1);
    MUST(pthread_mutex_unlock(&m));
    funlockfile(stream);
    return NULL;
}

static void *prints(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    fprintf(stream, "%d\n", 2);
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *flushes(void *unused)
{
    fprintf(stream, "%d\n", 3);
    MUST(fflush(stream));
    return unused;
}

static void *fills(void *unused)
{
    static char text[1 << 17];

    MUST(fwrite(text, sizeof text, 1, stream) != 1);
    return unused;
}

static void *drains(void *unused)
{
    static char text[1 << 16];
    ssize_t n;

    fputs("x", stream);
    for (int left = 1 << 17; left > 0; left -= (int)n)
        if ((n = read(ends[0], text, sizeof text)) <= 0)
            abort();
    return unused;
}

int main(int argc, char **argv)
{
    int cookie = arg_is(argc, argv, "cookie"), full = arg_is(argc, argv, "pipe");
    cookie_io_functions_t functions = {.write = writes};

    if (full)
        MUST(pipe(ends));
    stream = cookie ? fopencookie(NULL, "w", functions) : full ? fdopen(ends[1], "w") : stdout;
    pthread_t t1 = go(cookie ? flushes : full ? fills : holds, arg_is(argc, argv, "fixed") ? argv : NULL);
    pthread_t t2 = go(full ? drains : prints, NULL);
    join(t1);
    join(t2);
    if (full || cookie)
        _exit(0);
    return 0;
}
