/*
 * Two processes each read a number from a file, add one and write it back.
 * buggy: an update is lost. stdio: the same with fopen. fixed: under a record lock. flock: under flock, by descriptors of their own.
 * inherited: both read through one open file description, whose place in the file they share: what one reads the other does not.
 */
#include "t.h"
#include <fcntl.h>
#include <sys/file.h>

static char name[64];
static const char *how;

static int is(const char *word)
{
    return strcmp(how, word) == 0;
}

static void lock(int fd, short type)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET };
    if (is("fixed"))
        MUST(fcntl(fd, F_SETLKW, &l));
    if (is("flock"))
        MUST(flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX));
}

static void with_stdio(void)
{
    int n = 0;
    FILE *f = fopen(name, "r+");
    assert(f != NULL && fscanf(f, "%d", &n) == 1);
    rewind(f);
    fprintf(f, "%d\n", n + 1);
    MUST(fclose(f));
}

static void increment(void)
{
    if (is("stdio"))
        return with_stdio();
    int n, fd = open(name, O_RDWR);
    assert(fd >= 0);
    lock(fd, F_WRLCK);
    assert(read(fd, &n, sizeof n) == sizeof n);
    n++;
    assert(pwrite(fd, &n, sizeof n, 0) == sizeof n);
    lock(fd, F_UNLCK);
    MUST(close(fd));
}

static int inherited;

static void take(void)
{
    char c = 0;
    assert(read(inherited, &c, 1) == 1);
    /* Whoever is first gets the first one. */
    int fd = open(name, O_RDWR);
    assert(fd >= 0 && pwrite(fd, &c, 1, 4) == 1);
    if (c == 'b')
        _exit(3);
    _exit(0);
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "buggy";
    snprintf(name, sizeof name, "/tmp/file_counter.%d", (int)getpid());
    int n = 0, fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert(fd >= 0);
    if (is("stdio"))
        assert(write(fd, "0\n", 2) == 2);
    else if (is("inherited"))
        assert(write(fd, "ab", 2) == 2);
    else
        assert(write(fd, &n, sizeof n) == sizeof n);
    inherited = fd;
    assert(lseek(fd, 0, SEEK_SET) == 0);
    void (*body)(void) = is("inherited") ? take : increment;
    pid_t child[2] = { fork_run(body), fork_run(body) };
    int status[2] = { reap(child[0]), reap(child[1]) };
    if (is("inherited")) {
        assert(status[0] == 0 && WEXITSTATUS(status[1]) == 3);
        return 0;
    }
    assert(status[0] == 0 && status[1] == 0);
    if (is("stdio")) {
        char text[8] = "";
        assert(pread(fd, text, 7, 0) > 0);
        n = atoi(text);
    } else {
        assert(pread(fd, &n, sizeof n, 0) == sizeof n);
    }
    unlink(name);
    assert(n == 2);
    return 0;
}
