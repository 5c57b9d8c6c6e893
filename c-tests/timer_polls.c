/* A poll of nothing, without a time: a place for the handler of a timer, before it or within it. "before": the handler has run, and poll
 * gives 0; "within": poll fails with EINTR; "after": the handler runs later. */
#include "t.h"
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

static volatile int handled;

static void handler(int unused)
{
    (void)unused;
    handled = 1;
}

int main(int argc, char **argv)
{
    struct itimerval value = { .it_value = { 0, 1000 } };
    MUST(signal(SIGALRM, handler) == SIG_ERR || setitimer(ITIMER_REAL, &value, NULL));
    int before = handled, result = poll(NULL, 0, 0), after = handled;
    MUST(result && (result != -1 || errno != EINTR));
    MUST(usleep(2000) && errno != EINTR);
    assert(!arg_is(argc, argv, "before") || before || !after || result);
    assert(!arg_is(argc, argv, "within") || before || !result);
    assert(!arg_is(argc, argv, "after") || after);
    return 0;
}
