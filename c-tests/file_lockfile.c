/*
 * Two processes that guard a critical section with a lock file.
 * fixed: made with O_CREAT|O_EXCL. link: a file of one's own is linked to the name. directory: mkdir. buggy: looked for with access(), then made.
 * spin: tried again and again without a pause.
 */
#include "t.h"
#include <fcntl.h>
#include <sys/stat.h>

static char name[64];
static int *inside;
static const char *how;

static int is(const char *word)
{
    return strcmp(how, word) == 0;
}

/* True if this process has made the lock. */
static int try_lock(void)
{
    if (is("buggy")) {
        if (access(name, F_OK) == 0)
            return 0;
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        assert(fd >= 0);
        MUST(close(fd));
        return 1;
    }
    if (is("directory"))
        return mkdir(name, 0700) == 0;
    if (is("link")) {
        char own[96];
        snprintf(own, sizeof own, "%s.%d", name, (int)getpid());
        int fd = open(own, O_CREAT | O_EXCL | O_WRONLY, 0600);
        assert(fd >= 0);
        MUST(close(fd));
        int made = link(own, name) == 0;
        MUST(unlink(own));
        return made;
    }
    int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0) {
        assert(errno == EEXIST);
        return 0;
    }
    MUST(close(fd));
    return 1;
}

static void work(void)
{
    while (!try_lock()) {
        if (!is("spin"))
            return;
    }
    assert(++*inside == 1);
    sched_yield();
    --*inside;
    if (is("directory"))
        MUST(rmdir(name));
    else
        MUST(unlink(name));
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "buggy";
    inside = shared(sizeof *inside);
    snprintf(name, sizeof name, "/tmp/file_lockfile.%d", (int)getpid());
    pid_t child = fork_run(work);
    work();
    assert(reap(child) == 0);
    return 0;
}
