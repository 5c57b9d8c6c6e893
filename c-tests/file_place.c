/*
 * The place in a file tells who has written before, though nobody reads the file.  file_place VARIANT
 *   append   two threads append, each by a descriptor of its own, and ask where they are: who came first
 *   shared   two threads write by one descriptor and then ask where it is: the other one may have written meanwhile
 *   forked   the same with two processes
 *   moved    one thread sets the place of a descriptor, the other one asks for it
 *   ended    one thread goes to the end by a descriptor that the other one writes by
 *   before   one thread sets the place of a descriptor that the other one writes by, and is taken to come first
 *   after    the same, taken to come second
 *   log      two threads write and nobody asks: there is nothing to tell
 */
#include "t.h"
#include <fcntl.h>
#include <sys/stat.h>

static const char name[] = "file_place.log";
static int fd[2];
static off_t place[2];

static off_t write_and_ask(int by)
{
    assert(write(by, "ab", 2) == 2);
    return lseek(by, 0, SEEK_CUR);
}

static void *writer(void *which)
{
    int i = *(int *)which;
    place[i] = write_and_ask(fd[i]);
    return NULL;
}

static void *logger(void *which)
{
    assert(write(fd[*(int *)which], "ab", 2) == 2);
    return NULL;
}

static void *setter(void *which)
{
    place[*(int *)which] = lseek(fd[0], 7, SEEK_SET);
    return NULL;
}

static void *asker(void *which)
{
    place[*(int *)which] = lseek(fd[0], 0, SEEK_CUR);
    return NULL;
}

static void *ender(void *which)
{
    place[*(int *)which] = lseek(fd[0], 0, SEEK_END);
    return NULL;
}

static void two(void *(*first)(void *), void *(*second)(void *))
{
    static int number[2] = {0, 1};
    pthread_t a = go(first, &number[0]), b = go(second, &number[1]);
    join(a);
    join(b);
}

static void child(void)
{
    _exit(write_and_ask(fd[0]));
}

int main(int argc, char **argv)
{
    int append = arg_is(argc, argv, "append") ? O_APPEND : 0;
    unlink(name);
    for (int i = 0; i < 2; i++)
        fd[i] = open(name, O_WRONLY | O_CREAT | append, 0600);
    if (!append)
        fd[1] = fd[0];
    if (append) {
        two(writer, writer);
        assert(place[0] + place[1] == 6);
        assert(place[0] < place[1]);
    } else if (arg_is(argc, argv, "shared")) {
        two(writer, writer);
        assert(place[0] + place[1] == 6);
    } else if (arg_is(argc, argv, "forked")) {
        pid_t a = fork_run(child), b = fork_run(child);
        int first = WEXITSTATUS(reap(a)), second = WEXITSTATUS(reap(b));
        assert(first + second == 6);
    } else if (arg_is(argc, argv, "moved")) {
        two(setter, asker);
        assert(place[1] == 0);
    } else if (arg_is(argc, argv, "ended")) {
        fd[0] = open(name, O_RDWR);
        two(logger, ender);
        assert(place[1] == 0);
    } else if (arg_is(argc, argv, "before") || arg_is(argc, argv, "after")) {
        struct stat status;
        two(setter, logger);
        MUST(fstat(fd[0], &status));
        assert(status.st_size == (arg_is(argc, argv, "before") ? 9 : 2));
    } else if (arg_is(argc, argv, "log")) {
        two(logger, logger);
    } else {
        return 2;
    }
    unlink(name);
    return 0;
}
