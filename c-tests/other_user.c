/* A daemon that goes on as another user, where it was started by root: what it writes in a directory that all may write to, what it may
 * not write, /dev/shm, and another program that it becomes. Two of them meet at a lock file. "buggy": whoever does not get the file takes
 * it to be an error. */
#include "t.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define NOBODY 65534

static void as_user(const char *self, const char *how, const char *first)
{
    MUST(setgid(NOBODY));
    MUST(setuid(NOBODY));
    char name[64];
    snprintf(name, sizeof name, "/tmp/vsrun-other-%s", first);
    int fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0600);
    assert(fd >= 0 && write(fd, "x", 1) == 1);
    MUST(unlink(name));
    assert(open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
    assert(open("/root/vsrun-other", O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES);
    snprintf(name, sizeof name, "/vsrun-other-%s", first);
    fd = shm_open(name, O_CREAT | O_RDWR, 0600);
    assert(fd >= 0);
    MUST(ftruncate(fd, 4096));
    MUST(shm_unlink(name));
    execl(self, self, how, "again", (char *)0);
    _exit(9);
}

static void again(int buggy)
{
    int fd = open("/tmp/vsrun-other-lock", O_CREAT | O_RDWR | O_EXCL, 0600);
    if (fd < 0) assert(errno == EEXIST);
    assert(fd >= 0 || !buggy);
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        again(arg_is(argc, argv, "buggy"));
        return 0;
    }
    if (getuid()) {
        if (arg_is(argc, argv, "buggy")) abort();
        return 0;
    }
    char self[512] = "";
    assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    MUST(mkdir("/tmp/vsrun-other-made", 0777));
    MUST(chmod("/tmp/vsrun-other-made", 0777));
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (!children[i]) as_user(self, argv[1], i ? "one" : "two");
    }
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        int status;
        assert(waitpid(children[i], &status, 0) == children[i]);
        wrong |= status;
    }
    assert(!wrong);
    return 0;
}
