/*
 * A name that one process makes, takes away or gives other attributes, and another one finds by a call that is not open, stat or access
 * of a file: exec, access to a socket that is bound, connect, the opening of a FIFO, a link on the way, permissions, times. Each is wrong in one
 * order only. gone: a socket's name is taken away while it is connected to; after: afterwards. spawn: a program's name is taken away while
 * posix_spawn executes it, the order of which is not explored.
 */
#include "t.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char name[64], below[96];
static const char *how;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static int is(const char *word)
{
    return strcmp(how, word) == 0;
}

static int bound(void)
{
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert(s >= 0);
    MUST(bind(s, (struct sockaddr *)&address, sizeof address));
    MUST(listen(s, 1));
    return s;
}

static void other(void)
{
    const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    if (is("bind"))
        bound();
    else if (is("permissions"))
        MUST(chmod(name, 0400));
    else if (is("times"))
        MUST(utimensat(AT_FDCWD, name, long_ago, 0));
    else
        MUST(unlink(name));
}

/* As it was before the other process came. */
static int is_as_before(void)
{
    struct stat s;
    if (is("spawn")) {
        char *args[] = {name, NULL};
        pid_t pid;
        return posix_spawn(&pid, name, NULL, NULL, args, args + 1) != 0 || reap(pid) == 0;
    }
    if (is("exec")) {
        pid_t pid = fork();
        if (pid == 0) {
            execl(name, name, NULL);
            _exit(9);
        }
        return reap(pid) == 0;
    }
    if (is("bind"))
        return access(name, F_OK) < 0;
    if (is("link"))
        return open(below, O_RDONLY) >= 0;
    if (is("fifo"))
        return open(name, O_RDONLY | O_NONBLOCK) >= 0;
    if (is("gone") || is("after")) {
        int to = socket(AF_UNIX, SOCK_STREAM, 0);
        return (connect(to, (struct sockaddr *)&address, sizeof address) == 0) != is("after");
    }
    MUST(stat(name, &s));
    return is("times") ? s.st_mtime != 1 : (s.st_mode & 0777) == 0600;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "exec";
    snprintf(name, sizeof name, "/tmp/file_names.%d", (int)getpid());
    snprintf(below, sizeof below, "%s/null", name);
    strcpy(address.sun_path, name);
    if (is("exec") || is("spawn"))
        MUST(symlink("/bin/true", name));
    else if (is("link"))
        MUST(symlink("/dev", name));
    else if (is("fifo"))
        MUST(mkfifo(name, 0600));
    else if (is("gone") || is("after"))
        bound();
    else if (!is("bind"))
        MUST(close(open(name, O_CREAT | O_RDWR, 0600)));
    pid_t child = fork_run(other);
    if (is("after"))
        assert(reap(child) == 0);
    int before = is_as_before();
    if (!is("after"))
        assert(reap(child) == 0);
    unlink(name);
    assert(before);
    return 0;
}
