/* A file that many processes read and nobody writes is no communication object, however many they are; one that is written
   beside them is.

   none     twelve children read it: one order is all there is
   writer   the parent changes it meanwhile: what a child reads depends on the order */
#include "../shim/include/vs.h"
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 12 };

static void put(const char *text)
{
    int fd = open("readers.conf", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    VS_assert(fd >= 0 && write(fd, text, 1) == 1);
    close(fd);
}

static int look(void)
{
    char c = 0;
    int fd = open("readers.conf", O_RDONLY);
    VS_assert(fd >= 0);
    VS_assert(read(fd, &c, 1) == 1);
    close(fd);
    return c;
}

int main(int argc, char **argv)
{
    int writer = argc > 1 && !strcmp(argv[1], "writer"), children = writer ? 1 : CHILDREN;
    pid_t pids[CHILDREN];
    put("a");
    for (int i = 0; i < children; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            VS_assert(look() == 'a');
            _exit(0);
        }
    }
    if (writer) {
        int fd = open("readers.conf", O_WRONLY);
        VS_assert(fd >= 0 && pwrite(fd, "b", 1, 0) == 1);
        close(fd);
    }
    for (int i = 0; i < children; i++)
        waitpid(pids[i], NULL, 0);
    unlink("readers.conf");
    return 0;
}
