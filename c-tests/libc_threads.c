/*
 * What libc keeps under locks of its own. Which entry of a directory which of two threads gets depends on who comes first (readdir, and
 * what threads are made with by default); how far the thread has come that works on a request for aio is told by memory, and named.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static DIR *dir;
static int mine[2];

static void *list(void *arg)
{
    int *own = arg;

    while (readdir(dir))
        ++*own;
    return NULL;
}

static void *set(void *arg)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_setattr_default_np(&attributes);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t one, two;
    char how = argc > 1 ? argv[1][0] : 'd';

    if (how == 'a') {
        int ends[2];
        pipe(ends);
        /* The thread that carries it out reads it to its end, also when main has returned. */
        static struct aiocb request;
        request = (struct aiocb){ .aio_fildes = ends[1], .aio_buf = "x", .aio_nbytes = 1 };
        aio_write(&request);
        int error = aio_error(&request);
        assert(error == 0 || error == EINPROGRESS);
        return 0;
    }
    if (how == 's') {
        pthread_attr_t attributes;
        size_t before, after;
        pthread_getattr_default_np(&attributes);
        pthread_attr_getstacksize(&attributes, &before);
        pthread_create(&one, NULL, set, NULL);
        pthread_getattr_default_np(&attributes);
        pthread_attr_getstacksize(&attributes, &after);
        pthread_join(one, NULL);
        assert(before != after);
        return 0;
    }
    mkdir("empty", 0700);
    dir = opendir("empty");
    pthread_create(&one, NULL, list, &mine[0]);
#ifdef JOINED
    pthread_join(one, NULL);
#endif
    pthread_create(&two, NULL, list, &mine[1]);
#ifndef JOINED
    pthread_join(one, NULL);
#endif
    pthread_join(two, NULL);
    assert(mine[0] == 2);
    return 0;
}
