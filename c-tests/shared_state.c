/* What processes share beyond memory: two arguments, what it is, and "before" or "after": that the parent finds it so. "fixed": it looks when
 * the child has been waited for. */
#include "t.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int fd, ends[2], id;
static pid_t child;
static void *memory;
static char path[] = "/tmp/vsrun-shared-XXXXXX", second[64];

static void seeks(void) { MUST(lseek(fd, 2, SEEK_SET) != 2); }
static int is_there(void) { return lseek(fd, 0, SEEK_CUR) == 2; }
static int reads(void)
{
    char c;
    MUST(read(fd, &c, 1) != 1);
    return c == 'c';
}
static void shrinks(void) { MUST(fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096); }
static int is_small(void) { return fcntl(ends[0], F_GETPIPE_SZ) == 4096; }
static void reuses(void)
{
    int on = 1;
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
}
static int is_reused(void)
{
    int on;
    socklen_t size = sizeof on;
    MUST(getsockopt(ends[0], SOL_SOCKET, SO_REUSEADDR, &on, &size));
    return on == 1;
}
static int attached(void)
{
    struct shmid_ds ds;
    MUST(shmctl(id, IPC_STAT, &ds));
    return (int)ds.shm_nattch;
}
static void attaches(void) { MUST(shmat(id, NULL, 0) == (void *)-1 || shmat(id, NULL, 0) == (void *)-1); }
/* Something is there already: counted for a moment. */
static void attaches_in_vain(void) { MUST(shmat(id, memory, 0) != (void *)-1 || errno != EINVAL); }
static void attaches_once(void) { MUST(shmat(id, NULL, 0) == (void *)-1); }
/* For a moment the kernel counts the call and the mapping. */
static int is_twice(void) { return attached() == 4; }
static void detaches(void) { MUST(shmdt(memory)); }
static void nothing(void) {}
static int is_gone(void) { return attached() == 1; }
static int is_more(void) { return attached() > 2; }
static void removes(void) { MUST(shmctl(id, IPC_RMID, NULL)); }
static int is_removed(void) { return shmat(id, NULL, 0) == (void *)-1 || shmget(0x7654, 0, 0) < 0; }
/* Looked up, and gone when it was to be locked. */
static int is_whole(void) { return shmat(id, NULL, 0) != (void *)-1 || errno != EIDRM; }
static int is_whole_to_tell(void)
{
    struct shmid_ds ds;
    return !shmctl(id, IPC_STAT, &ds) || errno != EIDRM;
}
static void links(void) { MUST(link(path, second)); }
static int is_linked(void)
{
    struct stat s;
    MUST(fstat(fd, &s));
    return s.st_nlink == 2;
}
static void is_nice(void) { MUST(nice(2) < 0); }
static int is_nicer(void) { return getpriority(PRIO_PROCESS, child) == 2; }

static const struct { const char *name; void (*set)(void); int (*tell)(void); } ALL[] = {
    { "seek", seeks, is_there },     { "read", seeks, reads },          { "pipe", shrinks, is_small }, { "option", reuses, is_reused },
    { "attach", attaches, is_more }, { "vain", attaches_in_vain, is_more }, { "detach", detaches, is_gone },   { "end", nothing, is_gone },   { "remove", removes, is_removed },
    { "link", links, is_linked },    { "nice", is_nice, is_nicer },      { "twice", attaches_once, is_twice },
    { "torn", removes, is_whole },   { "torn-told", removes, is_whole_to_tell },
};

int main(int argc, char **argv)
{
    int at, status;
    MUST(argc != 3);
    for (at = 0; strcmp(ALL[at].name, argv[1]); at++) {}
    fd = mkstemp(path);
    MUST(fd < 0 || write(fd, "abcd", 4) != 4 || lseek(fd, 0, SEEK_SET));
    snprintf(second, sizeof second, "%s-2", path);
    if (ALL[at].set == reuses) {
        ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        MUST(ends[0] < 0);
    } else {
        MUST(pipe(ends));
    }
    id = shmget(0x7654, 4096, IPC_CREAT | 0600);
    memory = shmat(id, NULL, 0);
    MUST(memory == (void *)-1);
    if (!strncmp(argv[1], "torn", 4))
        MUST(shmdt(memory));
    child = fork();
    if (child == 0) {
        ALL[at].set();
        _exit(0);
    }
    int fixed = !strcmp(argv[2], "fixed");
    if (fixed)
        MUST(waitpid(child, &status, 0) != child);
    int after = ALL[at].tell();
    if (!fixed)
        MUST(waitpid(child, &status, 0) != child);
    shmctl(id, IPC_RMID, NULL);
    unlink(path), unlink(second);
    assert(after == (strcmp(argv[2], "before") != 0));
    return 0;
}
