/* Changes files in every way and looks at what can be seen of it. Wants the files that tests/tool/files.rs makes, in a
   directory w; without vsrun it changes them. */
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *body(void *a) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return a; }

static int entries(const char *dir, const char *name)
{
    DIR *d = opendir(dir); struct dirent *e; int n = 0, found = 0;
    assert(d);
    while ((e = readdir(d))) { n++; if (name && !strcmp(e->d_name, name)) { struct stat s; found = 1; 
        assert(fstatat(dirfd(d), name, &s, 0) == 0); assert(s.st_ino == e->d_ino); assert((s.st_mode >> 12) == e->d_type); } }
    closedir(d);
    return name ? found : n;
}
static long size(const char *f) { struct stat s; return stat(f, &s) ? -errno : s.st_size; }
static void put(const char *f, const char *t) { int fd = open(f, O_WRONLY | O_CREAT | O_TRUNC, 0644); assert(fd >= 0); assert(write(fd, t, strlen(t)) == (ssize_t)strlen(t)); close(fd); }
static void is(const char *f, const char *t) { char b[100]; int fd = open(f, O_RDONLY); assert(fd >= 0); ssize_t n = read(fd, b, 99); assert(n >= 0); b[n] = 0; if (strcmp(b, t)) { printf("%s: %s not %s\n", f, b, t); abort(); } close(fd); }
#define FAILS(x, e) do { long r_ = (x); if (r_ != -1 || errno != e) { printf("%d: %s gave %ld %d\n", __LINE__, #x, r_, errno); abort(); } } while (0)
int main(void)
{
    struct stat a, b, c; char buf[4096], cwd[4096];
    pthread_t t; 
    assert(getcwd(cwd, sizeof cwd));
    int before = entries(".", 0);
    /* append to a file that is there */
    assert(stat("old", &a) == 0 && a.st_size == 4);
    int fd = open("old", O_WRONLY | O_APPEND); assert(fd >= 0);
    assert(write(fd, "new\n", 4) == 4);
    assert(fstat(fd, &b) == 0 && b.st_ino == a.st_ino && b.st_dev == a.st_dev && b.st_size == 8 && b.st_mode == a.st_mode);
    assert(stat("old", &c) == 0 && c.st_ino == a.st_ino && c.st_dev == a.st_dev && c.st_size == 8);
    close(fd);
    is("old", "old\nnew\n");
    is("./d/../old", "old\nnew\n"); is("d/../../w/./old", "old\nnew\n");
    assert(entries(".", 0) == before);
    assert(entries(".", "old") == 1);
    /* create, exclusive, unlink, create */
    FAILS(open("old", O_CREAT | O_EXCL | O_WRONLY, 0600), EEXIST);
    FAILS(open("none/x", O_CREAT | O_WRONLY, 0600), ENOENT);
    FAILS(open("old/x", O_CREAT | O_WRONLY, 0600), ENOTDIR);
    FAILS(open("d", O_CREAT | O_WRONLY, 0600), EISDIR);
    FAILS(open("newdir/", O_CREAT | O_WRONLY, 0600), EISDIR);
    put("fresh", "hello");
    assert(entries(".", "fresh") == 1); assert(entries(".", 0) == before + 1);
    assert(stat("fresh", &b) == 0 && b.st_dev == a.st_dev && b.st_nlink == 1);
    assert(unlink("fresh") == 0); FAILS(unlink("fresh"), ENOENT);
    assert(size("fresh") == -ENOENT); assert(entries(".", 0) == before);
    assert(unlink("old") == 0); assert(size("old") == -ENOENT); FAILS(unlink("old"), ENOENT); FAILS(access("old", F_OK), ENOENT);
    FAILS(open("old", O_RDONLY), ENOENT);
    assert(entries(".", "old") == 0); assert(entries(".", 0) == before - 1);
    put("old", "again"); is("old", "again"); assert(entries(".", 0) == before);
    /* rename over */
    put("tmp", "renamed"); assert(rename("tmp", "other") == 0); is("other", "renamed"); assert(size("tmp") == -ENOENT);
    assert(rename("other", "third") == 0); assert(size("other") == -ENOENT); is("third", "renamed");
    assert(entries(".", 0) == before - 1);
    assert(rename("d/in", "moved") == 0); is("moved", "in\n"); assert(size("d/in") == -ENOENT);
    FAILS(rename("none", "x"), ENOENT); FAILS(rename("moved", "d"), EISDIR);
    /* directories */
    FAILS(rmdir("full"), ENOTEMPTY); FAILS(rmdir("moved"), ENOTDIR); FAILS(mkdir("d", 0700), EEXIST);
    assert(unlink("full/one") == 0); assert(rmdir("full") == 0); FAILS(chdir("full"), ENOENT);
    assert(mkdir("full", 0700) == 0); assert(entries("full", 0) == 2);
    assert(mkdir("full/sub", 0755) == 0); put("full/sub/f", "x"); assert(rename("full/sub", "d/sub") == 0); is("d/sub/f", "x");
    assert(entries("d", "sub") == 1);
    assert(chdir("d/sub") == 0); is("f", "x"); is("../../old", "again");
    assert(getcwd(buf, sizeof buf)); char want[5000]; snprintf(want, sizeof want, "%s/d/sub", cwd); if (strcmp(buf, want)) { printf("%s\n", buf); abort(); }
    char *rp = realpath("f", 0); snprintf(want, sizeof want, "%s/d/sub/f", cwd); assert(!strcmp(rp, want));
    assert(chdir("../..") == 0); assert(getcwd(buf, sizeof buf) && !strcmp(buf, cwd));
    FAILS(rmdir("d/sub"), ENOTEMPTY); assert(unlink("d/sub/f") == 0); assert(rmdir("d/sub") == 0);
    /* links */
    assert(symlink("old", "link") == 0); is("link", "again"); put("link", "by link"); is("old", "by link");
    assert(readlink("link", buf, 100) == 3 && !memcmp(buf, "old", 3));
    assert(lstat("link", &b) == 0 && S_ISLNK(b.st_mode)); FAILS(open("link", O_RDONLY | O_NOFOLLOW), ELOOP);
    assert(link("old", "hard") == 0); is("hard", "by link"); assert(stat("hard", &b) == 0 && b.st_nlink == 2); assert(stat("old", &c) == 0 && c.st_ino == b.st_ino);
    put("toreal", "via a real link"); is("target", "via a real link"); /* toreal -> target is there */
    put("dangling", "made"); is("missing", "made");
    /* attributes */
    assert(chmod("target", 0600) == 0); assert(stat("target", &b) == 0 && (b.st_mode & 0777) == 0600);
    assert(truncate("target", 3) == 0); is("target", "via");
    struct timespec ts[2] = { { 1000, 0 }, { 2000, 0 } }; assert(utimensat(AT_FDCWD, "target", ts, 0) == 0); assert(stat("target", &b) == 0 && b.st_mtime == 2000);
    /* open files go on */
    fd = open("target", O_RDWR); assert(unlink("target") == 0); assert(pread(fd, buf, 10, 0) == 3); assert(pwrite(fd, "V", 1, 0) == 1); 
    snprintf(want, sizeof want, "/proc/self/fd/%d", fd); ssize_t n = readlink(want, buf, sizeof buf); buf[n] = 0; snprintf(want, sizeof want, "%s/target (deleted)", cwd); assert(!strcmp(buf, want)); close(fd);
    fd = open("third", O_RDONLY); snprintf(want, sizeof want, "/proc/self/fd/%d", fd); n = readlink(want, buf, sizeof buf); buf[n] = 0; snprintf(want, sizeof want, "%s/third", cwd); assert(!strcmp(buf, want));
    int fd2 = open("/dev/stdout", O_WRONLY); assert(fd2 == fd + 1); close(fd2); close(fd);
    /* no name */
    fd = open(".", O_TMPFILE | O_RDWR, 0600); assert(fd >= 0); assert(write(fd, "tmp", 3) == 3);
    snprintf(want, sizeof want, "/proc/self/fd/%d", fd); assert(linkat(AT_FDCWD, want, AT_FDCWD, "named", AT_SYMLINK_FOLLOW) == 0); is("named", "tmp"); close(fd);
    /* mapped */
    fd = open("mapped", O_RDWR); assert(fd >= 0); char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); assert(p != MAP_FAILED);
    assert(!memcmp(p, "mapped", 6)); memcpy(p, "MAPPED", 6); msync(p, 4096, MS_SYNC); is("mapped", "MAPPED\n"); munmap(p, 4096); close(fd);
    /* dirfd */
    int d = open("d", O_RDONLY | O_DIRECTORY); fd = openat(d, "at", O_CREAT | O_WRONLY, 0640); assert(fd >= 0); close(fd); assert(faccessat(d, "at", R_OK, 0) == 0); assert(size("d/at") == 0);
    assert(fstatat(d, "at", &b, 0) == 0 && (b.st_mode & 0777) == 0640); assert(mkdirat(d, "dd", 0700) == 0); assert(unlinkat(d, "dd", AT_REMOVEDIR) == 0); assert(unlinkat(d, "at", 0) == 0); close(d);
    /* statx, child with a shell */
    struct statx sx; assert(statx(AT_FDCWD, "old", 0, STATX_BASIC_STATS, &sx) == 0); assert(stat("old", &b) == 0); assert(sx.stx_ino == b.st_ino && ((sx.stx_dev_major << 8) | sx.stx_dev_minor) == b.st_dev);
    assert(pthread_create(&t, 0, body, 0) == 0); body(0); pthread_join(t, 0);
    if (fork() == 0) { put("child", "child"); _exit(0); }
    wait(0); is("child", "child");
    assert(system("ls >listed; cat child >>listed; test -s listed && rm listed") == 0);
    assert(size("listed") == -ENOENT);
    return 0;
}
