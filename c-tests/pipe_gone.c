/* Two bytes for a process that reads one and ends. Buggy: the second write may come after its end, and SIGPIPE ends the writer. "ignored":
 * the signal is ignored, but not the answer EPIPE. "arrives": takes it that it always fails. Fixed: takes both answers. */
#include <signal.h>

#include "t.h"

static int p[2];
static const char *variant;

static void reads(void)
{
    char byte;

    close(p[1]);
    if (read(p[0], &byte, 1) != 1)
        abort();
}

static void writes(void)
{
    ssize_t rc;

    close(p[0]);
    if (strcmp(variant, "buggy") != 0)
        signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++)
        rc = write(p[1], "x", 1);
    if (strcmp(variant, "ignored") == 0)
        assert(rc == 1);
    if (strcmp(variant, "arrives") == 0)
        assert(rc == -1);
    assert(rc == 1 || errno == EPIPE);
}

int main(int argc, char **argv)
{
    pid_t reader, writer;

    variant = argc > 1 ? argv[1] : "fixed";
    MUST(pipe(p));
    reader = fork_run(reads);
    writer = fork_run(writes);
    close(p[0]);
    close(p[1]);
    assert(reap(writer) == 0);
    assert(reap(reader) == 0);
    return 0;
}
