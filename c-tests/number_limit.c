/* No number is left for a descriptor: what takes one before it does anything else fails at once, and leaves nothing. */
#include "t.h"
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listener, error;

static void *accepts(void *arg)
{
    error = accept(listener, NULL, NULL) < 0 ? errno : 0;
    return arg;
}

int main(int argc, char **argv)
{
    struct sockaddr_un name = { AF_UNIX, "" };
    struct rlimit few;
    MUST(argc != 2);
    strcpy(name.sun_path + 1, "number-limit");
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(listener < 0 || bind(listener, (void *)&name, sizeof name) || listen(listener, 5) || getrlimit(RLIMIT_NOFILE, &few));
    few.rlim_cur = listener + 1;
    MUST(setrlimit(RLIMIT_NOFILE, &few));
    if (!strcmp(argv[1], "accept")) {
        join(go(accepts, NULL));
        MUST(error != EMFILE);
    } else {
        MUST(mq_open("/number-limit", O_CREAT | O_RDWR, 0600, NULL) != -1 || errno != EMFILE);
        MUST(sem_open("/number-limit", O_CREAT, 0600, 0) != SEM_FAILED || errno != EMFILE);
        few.rlim_cur = listener + 2;
        MUST(setrlimit(RLIMIT_NOFILE, &few));
        MUST(mq_open("/number-limit", O_RDWR) != -1 || errno != ENOENT);
        MUST(sem_open("/number-limit", 0) != SEM_FAILED || errno != ENOENT);
    }
    return 0;
}
