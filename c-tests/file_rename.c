/*
 * A process replaces a file that another one reads.
 * fixed: what is new is written beside it and gets its name: the reader finds the old or the new. buggy: emptied and written: the
 * reader may find nothing. list: the reader lists the directory. sized: it asks for the size by name.
 */
#include "t.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static char dir[64], name[96], other[96];
static const char *how;

static int is(const char *word)
{
    return strcmp(how, word) == 0;
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert(fd >= 0 && write(fd, text, 3) == 3);
    MUST(close(fd));
}

static void writer(void)
{
    if (is("buggy") || is("sized"))
        return put(name, "new");
    put(other, "new");
    MUST(rename(other, name));
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "buggy";
    snprintf(dir, sizeof dir, "/tmp/file_rename.%d", (int)getpid());
    MUST(mkdir(dir, 0700));
    snprintf(name, sizeof name, "%s/state", dir);
    snprintf(other, sizeof other, "%s/state.new", dir);
    put(name, "old");
    pid_t child = fork_run(writer);
    if (is("list")) {
        /* Between the two the directory has two files. */
        int n = 0;
        DIR *d = opendir(dir);
        assert(d != NULL);
        for (struct dirent *e; (e = readdir(d)) != NULL;)
            n += e->d_name[0] != '.';
        MUST(closedir(d));
        assert(n == 1);
    } else if (is("sized")) {
        struct stat s;
        MUST(stat(name, &s));
        assert(s.st_size == 3);
    } else {
        char text[4] = "";
        int fd = open(name, O_RDONLY);
        assert(fd >= 0);
        assert(read(fd, text, 3) == 3);
        assert(strcmp(text, "old") == 0 || strcmp(text, "new") == 0);
        MUST(close(fd));
    }
    assert(reap(child) == 0);
    return 0;
}
