/* A descriptor that another thread closes while one waits for it in poll or select: the wait goes on, with what it has found, and is over when
 * that is ready; then the number is looked up again. "stays": it waits for ever; "closed": POLLNVAL in the end; "timeout": the same
 * when the time is over; "select": EBADF, or the set; "late": who asks after the close is told at once. */
#include "t.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

static int event;
static struct pollfd asked;
static int result;

static void *polls(void *arg)
{
    asked = (struct pollfd){ event, POLLIN, 0 };
    result = poll(&asked, 1, arg ? 100 : -1);
    return NULL;
}

static fd_set set;

static void *selects(void *arg)
{
    FD_ZERO(&set);
    FD_SET(event, &set);
    result = select(event + 1, &set, NULL, NULL, NULL);
    return arg;
}

int main(int argc, char **argv)
{
    event = eventfd(0, 0);
    int other = dup(event);
    uint64_t one = 1;
    if (arg_is(argc, argv, "stays")) {
        pthread_t t = go(polls, NULL);
        MUST(close(event));
        join(t);
    } else if (arg_is(argc, argv, "closed")) {
        pthread_t t = go(polls, NULL);
        MUST(close(event));
        MUST(write(other, &one, sizeof one) != sizeof one);
        join(t);
        assert(result == 1 && asked.revents == POLLNVAL);
    } else if (arg_is(argc, argv, "timeout")) {
        pthread_t t = go(polls, &one);
        MUST(close(event));
        join(t);
        assert(result == 1 ? asked.revents == POLLNVAL : result == 0);
    } else if (arg_is(argc, argv, "late")) {
        pthread_t t = go(polls, &one);
        MUST(close(event));
        join(t);
        assert(result != 1);
    } else if (arg_is(argc, argv, "select")) {
        pthread_t t = go(selects, NULL);
        MUST(close(event));
        MUST(write(other, &one, sizeof one) != sizeof one);
        join(t);
        assert(result == 1 ? FD_ISSET(event, &set) : result == -1);
    }
    return 0;
}
