/* What threads of a process share beside memory, or may set of each other, with two arguments: what it is, and "before" or "after": that the
 * first thread finds it so. Each alone is wrong in some order. "fixed": looks when the other one is over. */
#include "t.h"
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static pid_t first;
static pthread_t first_thread;
static char directory[] = "/tmp/vsrun-state-XXXXXX";

static void sets_umask(void) { umask(077); }
static int tells_umask(void) { return umask(022) == 077; }
static int opens(void)
{
    struct stat s;
    int fd = open("made", O_CREAT | O_RDWR, 0666);
    MUST(fd < 0 || fstat(fd, &s) || close(fd));
    return (s.st_mode & 0777) == 0600;
}
static void changes(void) { MUST(chdir("sub")); }
static int finds(void) { return access("there", F_OK) == 0; }
static int asks(void)
{
    char text[256];
    MUST(!getcwd(text, sizeof text));
    return strlen(text) > 4 && !strcmp(text + strlen(text) - 4, "/sub");
}
static void sets_nice(void) { MUST(setpriority(PRIO_PROCESS, first, 3)); }
static int tells_nice(void) { return getpriority(PRIO_PROCESS, 0) == 3; }
static void sets_policy(void)
{
    struct sched_param p = { 0 };
    MUST(sched_setscheduler(first, SCHED_BATCH, &p));
}
static int tells_policy(void) { return sched_getscheduler(0) == SCHED_BATCH; }
static void *nothing(void *arg) { return sched_getscheduler(0) == SCHED_BATCH ? &first : arg; }
static int passes_on(void)
{
    void *told;
    pthread_t t = go(nothing, NULL);
    MUST(pthread_join(t, &told));
    return told != NULL;
}
static void sets_processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    MUST(sched_setaffinity(first, sizeof set, &set));
}
static int tells_processors(void)
{
    cpu_set_t set;
    MUST(sched_getaffinity(0, sizeof set, &set));
    return CPU_COUNT(&set) == 1;
}
static void sets_limit(void)
{
    struct rlimit limit = { 7, 7 };
    MUST(setrlimit(RLIMIT_CORE, &limit));
}
static int tells_limit(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_CORE, &limit));
    return limit.rlim_cur == 7;
}
static void sets_name(void) { MUST(pthread_setname_np(first_thread, "named")); }
static int tells_name(void)
{
    char text[16];
    MUST(prctl(PR_GET_NAME, text));
    return !strcmp(text, "named");
}

static const struct { const char *name; void (*set)(void); int (*tell)(void); } ALL[] = {
    { "umask", sets_umask, tells_umask },     { "open", sets_umask, opens },           { "chdir", changes, finds },
    { "getcwd", changes, asks },              { "nice", sets_nice, tells_nice },       { "policy", sets_policy, tells_policy },
    { "passed", sets_policy, passes_on },     { "processors", sets_processors, tells_processors },
    { "limit", sets_limit, tells_limit },     { "name", sets_name, tells_name },
};

static int at;
static void *runs(void *arg)
{
    ALL[at].set();
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 3);
    for (at = 0; strcmp(ALL[at].name, argv[1]); at++) {}
    first = getpid(), first_thread = pthread_self();
    umask(022);
    struct rlimit limit = { 3, 7 };
    MUST(setrlimit(RLIMIT_CORE, &limit));
    MUST(!mkdtemp(directory) || chdir(directory) || mkdir("sub", 0700));
    int fd = open("sub/there", O_CREAT | O_RDWR, 0600);
    MUST(fd < 0 || close(fd));
    pthread_t t = go(runs, NULL);
    if (!strcmp(argv[2], "fixed"))
        join(t);
    int after = ALL[at].tell();
    if (strcmp(argv[2], "fixed"))
        join(t);
    assert(after == (strcmp(argv[2], "before") != 0));
    char there[300], command[400];
    snprintf(there, sizeof there, "%s/sub/there", directory);
    snprintf(command, sizeof command, "%s/made", directory);
    unlink(there), unlink(command);
    snprintf(there, sizeof there, "%s/sub", directory);
    rmdir(there), rmdir(directory);
    return 0;
}
