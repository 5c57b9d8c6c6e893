/* Which number a new descriptor gets is the lowest that is free, at that moment: seen by who opens beside another. "order": one of two that
 * open a file each has the lower number, and it may be either; "mixed": a pipe has numbers that are not next to each other; "accept": a
 * number is taken from the moment at which accept waits; "freed": a number that another thread closes is given, or the next one;
 * "dup": dup of what is closed meanwhile may get its own number back; "created": with numbers of their own, one after the other. */
#include "t.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int got[2], pair[2];
static int listener;

static void *opens(void *arg)
{
    got[(long)arg] = open("/dev/null", O_RDONLY);
    return NULL;
}

static void *pipes(void *arg)
{
    MUST(pipe(pair));
    return arg;
}

static void *accepts(void *arg)
{
    got[0] = accept(listener, NULL, NULL);
    return arg;
}

static void *closes(void *arg)
{
    MUST(close((int)(long)arg));
    return NULL;
}

static void *dups(void *arg)
{
    got[0] = dup((int)(long)arg);
    return NULL;
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "order")) {
        pthread_t t = go(opens, (void *)0), u = go(opens, (void *)1);
        join(t);
        join(u);
        assert(got[0] < got[1]);
    } else if (arg_is(argc, argv, "mixed")) {
        pthread_t t = go(pipes, NULL);
        opens((void *)0);
        join(t);
        assert(pair[1] == pair[0] + 1);
    } else if (arg_is(argc, argv, "accept")) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        strcpy(name.sun_path + 1, "fd_numbers");
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        socklen_t len = offsetof(struct sockaddr_un, sun_path) + 11;
        MUST(bind(listener, (struct sockaddr *)&name, len));
        MUST(listen(listener, 1));
        pthread_t t = go(accepts, NULL);
        got[1] = open("/dev/null", O_RDONLY);
        MUST(connect(client, (struct sockaddr *)&name, len));
        join(t);
        assert(got[1] < got[0]);
    } else if (arg_is(argc, argv, "freed")) {
        int first = open("/dev/null", O_RDONLY);
        pthread_t t = go(closes, (void *)(long)first);
        opens((void *)0);
        join(t);
        assert(got[0] == first + 1);
    } else if (arg_is(argc, argv, "dup")) {
        int first = open("/dev/null", O_RDONLY);
        pthread_t t = go(dups, (void *)(long)first);
        MUST(close(first));
        join(t);
        assert(got[0] != first);
    } else if (arg_is(argc, argv, "created")) {
        for (long i = 0; i < 2; i++) {
            pthread_t t = go(opens, (void *)i);
            join(t);
            MUST(close(got[i]));
        }
        assert(got[0] == got[1]);
    }
    return 0;
}
