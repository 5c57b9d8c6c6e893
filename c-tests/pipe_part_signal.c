/* Who has written a part of its data when the last reader goes gets SIGPIPE as well as the number of bytes. */
#include "t.h"
#include <signal.h>

static int p[2];
static char data[70000];
static volatile sig_atomic_t told;

static void handler(int signal)
{
    told = signal;
}

static void *closes(void *unused)
{
    MUST(close(p[0]));
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = handler};
    pthread_t t;
    ssize_t n;
    if (!arg_is(argc, argv, "killed")) MUST(sigaction(SIGPIPE, &act, NULL));
    MUST(pipe(p));
    t = go(closes, NULL);
    n = write(p[1], data, sizeof data);
    assert(n == -1 ? errno == EPIPE : n == 65536);
    assert(told == SIGPIPE);
    if (arg_is(argc, argv, "part")) assert(n == -1);
    join(t);
    return 0;
}
