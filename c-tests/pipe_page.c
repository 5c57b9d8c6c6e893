/*
 * A pipe keeps bytes in pages, and puts more into the last one only behind what has been there.  pipe_page VARIANT
 *   read      one byte of a full page is read, and one is written: there is no room (fs/pipe.c, pipe_write)
 *   drained   the whole page is read
 *   behind    the page was not full: its last bytes are still there to be used
 */
#define _GNU_SOURCE
#include "t.h"
#include <fcntl.h>

static char page[4096];

int main(int argc, char **argv)
{
    (void)argc;
    int ends[2], n = strcmp(argv[1], "behind") == 0 ? 4000 : 4096;
    assert(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096);
    assert(write(ends[1], page, n) == n);
    n = strcmp(argv[1], "drained") == 0 ? 4096 : 1;
    assert(read(ends[0], page, n) == n);
    assert(write(ends[1], page, 96) == 96);
    return 0;
}
