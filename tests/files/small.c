/* Programs that write files, by the first argument; see tests/tool/files.rs. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *body(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void two_threads(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&t[i], 0, body, 0) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(t[i], 0) == 0);
}

static long length(const char *name)
{
    struct stat s;
    return stat(name, &s) == 0 ? s.st_size : -errno;
}

static void append(const char *name, const char *line)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    assert(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    close(fd);
}

/* A transaction: the old page to a journal, the new one in place, the journal away. */
static void transaction(void)
{
    char page[5] = "";
    int fd = open("db", O_RDWR);
    assert(fd >= 0 && read(fd, page, 4) == 4 && !strcmp(page, "old\n"));
    int journal = open("db-journal", O_RDWR | O_CREAT | O_EXCL, 0644), dir = open(".", O_RDONLY | O_DIRECTORY);
    assert(journal >= 0 && write(journal, page, 4) == 4 && fsync(journal) == 0 && fsync(dir) == 0);
    assert(pwrite(fd, "new\n", 4, 0) == 4 && fdatasync(fd) == 0);
    close(journal);
    assert(unlink("db-journal") == 0 && fsync(dir) == 0 && length("db-journal") == -ENOENT);
    two_threads();
    assert(pread(fd, page, 4, 0) == 4 && !strcmp(page, "new\n"));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "append")) {
        append("log", "line\n");
        two_threads();
        append("log", "line\n");
        assert(length("log") == 10);
    } else if (!strcmp(what, "journal")) {
        transaction();
    } else if (!strcmp(what, "log")) {
        /* Parent and child write at the same time. */
        if (fork() == 0) {
            append("log", "child\n");
            _exit(0);
        }
        append("log", "parent\n");
        wait(0);
    } else if (!strcmp(what, "wait")) {
        /* The child writes, the parent waits for it and reads. */
        if (fork() == 0) {
            append("log", "child\n");
            _exit(0);
        }
        wait(0);
        int fd = open("log", O_RDONLY);
        char text[8] = "";
        assert(read(fd, text, 7) == 6 && !strcmp(text, "child\n"));
        two_threads();
    } else if (!strcmp(what, "reader")) {
        /* What is written is to be seen by who has it open already. */
        int fd = open("db", O_RDONLY);
        append("db", "more\n");
        char text[10] = "";
        assert(read(fd, text, 9) == 9);
    } else if (!strcmp(what, "fifo")) {
        /* A FIFO of the execution's own. */
        char text[4] = "";
        assert(mkfifo("fifo", 0600) == 0 && mkfifo("fifo", 0600) == -1 && errno == EEXIST);
        if (fork() == 0) {
            int fd = open("fifo", O_WRONLY);
            assert(fd >= 0 && write(fd, "abc", 3) == 3);
            _exit(0);
        }
        int fd = open("fifo", O_RDONLY);
        assert(fd >= 0 && read(fd, text, 3) == 3 && !strcmp(text, "abc"));
        wait(0);
        assert(unlink("fifo") == 0 && length("fifo") == -ENOENT);
    } else if (!strcmp(what, "race")) {
        /* Which of two threads takes a name decides what is left. */
        two_threads();
        assert(mkdir("taken", 0700) == 0);
    }
    return 0;
}
