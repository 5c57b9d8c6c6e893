/* A pipe whose writers are two processes that end, one byte each. Fixed: the reader reads to the end, that is until the last copy is
 * closed. Buggy: it keeps a copy itself. "sibling": another child does, which waits for the reader to say so. "zombie": the reader takes
 * it that at the end of the pipe its writer, there is one then, is over; but it closes before. */
#include "t.h"

static int p[2];

static void writes(void)
{
    close(p[0]);
    if (write(p[1], "x", 1) != 1)
        abort();
}

int main(int argc, char **argv)
{
    int sibling = arg_is(argc, argv, "sibling"), zombie = arg_is(argc, argv, "zombie");
    int n = zombie ? 1 : 2, got = 0, said[2];
    pid_t writer[2], waits = 0;
    char byte;

    MUST(pipe(p));
    for (int i = 0; i < n; i++)
        writer[i] = fork_run(writes);
    if (sibling) {
        MUST(pipe(said));
        waits = fork();
        if (waits == 0) {
            close(said[1]);
            _exit(read(said[0], &byte, 1) != 0);
        }
    }
    if (!arg_is(argc, argv, "buggy"))
        close(p[1]);
    while (read(p[0], &byte, 1) == 1)
        got++;
    assert(got == n);
    if (zombie)
        assert(waitpid(writer[0], NULL, WNOHANG) == writer[0]);
    else
        for (int i = 0; i < n; i++)
            assert(reap(writer[i]) == 0);
    if (sibling) {
        close(said[1]);
        assert(reap(waits) == 0);
    }
    return 0;
}
