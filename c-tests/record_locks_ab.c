/*
 * Two processes lock records of one file in crossing order and work on what the locks protect.
 * buggy: the kernel tells one of them EDEADLK, which it does not look at: it goes on without the lock.
 * flock: whole files with flock, for which the kernel looks for no circle.
 * fixed: both lock in the same order.
 */
#include "t.h"
#include <fcntl.h>
#include <sys/file.h>

static char name[2][32];
static int file[2];
static int whole, ordered;

static int take(int which)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which * 8, .l_len = 8 };
    return whole ? flock(file[which], LOCK_EX) : fcntl(file[0], F_SETLKW, &l);
}

static void give(int which)
{
    struct flock l = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = which * 8, .l_len = 8 };
    MUST(whole ? flock(file[which], LOCK_UN) : fcntl(file[0], F_SETLK, &l));
}

static void nobody_else_has(int which)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which * 8, .l_len = 8 };
    MUST(fcntl(file[0], F_GETLK, &l));
    assert(l.l_type == F_UNLCK);
}

static void transfer(int from, int to)
{
    if (ordered && from > to) {
        int swap = from;
        from = to;
        to = swap;
    }
    take(from);
    take(to);
    if (!whole)
        nobody_else_has(to);
    give(to);
    give(from);
}

static void open_files(void)
{
    for (int i = 0; i < 2; i++) {
        file[i] = open(name[i], O_RDWR | O_CREAT, 0600);
        assert(file[i] >= 0);
    }
}

static void child(void)
{
    open_files();
    transfer(1, 0);
}

int main(int argc, char **argv)
{
    whole = arg_is(argc, argv, "flock");
    ordered = arg_is(argc, argv, "fixed");
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "/dev/shm/records-%c", "ab"[i]);
    open_files();
    pid_t pid = fork_run(child);
    transfer(0, 1);
    assert(reap(pid) == 0);
    return 0;
}
