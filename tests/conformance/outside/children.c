// children COUNT [N]: does to children of its own, by their numbers, all that a process can do to another; with N: only the Nth thing,
// without: prints how many there are. Prints what it found, if anything, which is not to be of a process outside.
#include "../check.h"
#include <dirent.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

// As in decoys.c.
#define MEMORY ((char *)0x2000000000)
static char *memory;
static pid_t id;
static int pidfd = -1;

static int write_to(const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", id, name);
    int fd = open(path, O_WRONLY);
    int n = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
    close(fd);
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", id, id, name);
    fd = open(path, O_WRONLY);
    if (fd >= 0)
        n = (int)write(fd, text, strlen(text));
    close(fd);
    return n;
}

static int show(const char *name) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/%s", id, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    for (ssize_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = ' ';
    printf("%s: %s\n", path, text);
    return n < 0 ? -1 : 0;
}

static int memory_file(int writes) {
    char path[64], text[8] = "";
    snprintf(path, sizeof path, "/proc/%d/mem", id);
    int fd = open(path, writes ? O_RDWR : O_RDONLY);
    ssize_t n = fd < 0                ? -1
                : writes              ? pwrite(fd, "taken", 6, (off_t)(uintptr_t)memory)
                                      : pread(fd, text, 6, (off_t)(uintptr_t)memory);
    close(fd);
    printf("%s: %s\n", path, text);
    return (int)n;
}

static int owns(int command, int is_pidfd) {
    int p[2];
    struct f_owner_ex o = {F_OWNER_PID, id};
    if (is_pidfd || pipe(p) != 0)
        return -1;
    fcntl(p[0], F_SETSIG, SIGKILL);
    int rc = command == F_SETOWN_EX ? fcntl(p[0], command, &o) : fcntl(p[0], command, id);
    fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    if (write(p[1], "x", 1) != 1)
        return -1;
    return rc;
}

static int timer(void) {
    struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGKILL};
    struct itimerspec t = {.it_value.tv_nsec = 1};
    timer_t made;
    e._sigev_un._tid = id;
    return timer_create(CLOCK_MONOTONIC, &e, &made) || timer_settime(made, 0, &t, 0) ? -1 : usleep(1000);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1, only = argc > 2 ? atoi(argv[2]) : -1, at = 0;
    pid_t children[64];
    struct sched_param p = {0}, real_time = {1};
    struct rlimit l = {77, 77};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } a = {.size = 48, .policy = 3, .nice = 7};
    cpu_set_t set;
    char text[8] = "taken";
    struct iovec here = {text, 6}, there = {MEMORY, 6};
    siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};
    unsigned long nodes = 1, from = 1;
    void *page = MEMORY, *list = 0;
    int node = 0, where;
    size_t len = 0;
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf, .config = PERF_COUNT_SW_CPU_CLOCK};
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    memory = mmap(MEMORY, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MEMORY)
        return 2;
    strcpy(memory, "child");
    group = "children";
    setvbuf(stdout, 0, _IONBF, 0);
    if (only >= 0)
        for (int i = 0; i < count; i++)
            if ((children[i] = fork()) == 0)
                for (;;)
                    pause();

#define DO(call)                              \
    do {                                      \
        if (only == at) {                     \
            printf("%s\n", #call);            \
            for (int i = 0; i < count; i++) { \
                id = children[i];             \
                (void)!(call);                \
            }                                 \
        }                                     \
        at++;                                 \
    } while (0)
#define DO_PIDFD(call) DO((pidfd = syscall(SYS_pidfd_open, id, 0)) < 0 ? -1 : (call))

    DO(kill(id, 0));
    DO(kill(id, SIGTERM));
    DO(kill(id, SIGKILL));
    DO(kill(id, SIGSTOP));
    DO(kill(-id, SIGKILL));
    DO(killpg(id, SIGSTOP));
    DO(syscall(SYS_tkill, id, SIGKILL));
    DO(syscall(SYS_tgkill, id, id, SIGKILL));
    DO(sigqueue(id, SIGKILL, (union sigval){0}));
    DO(syscall(SYS_rt_sigqueueinfo, id, SIGKILL, &info));
    DO(syscall(SYS_rt_tgsigqueueinfo, id, id, SIGKILL, &info));
    DO(setpriority(PRIO_PROCESS, id, 11));
    DO(setpriority(PRIO_PGRP, id, 11));
    DO(setpriority(PRIO_USER, getuid() + 12345, 11));
    DO(sched_setscheduler(id, SCHED_BATCH, &p));
    DO(sched_setscheduler(id, SCHED_FIFO, &real_time));
    DO(sched_setscheduler(id, SCHED_IDLE, &p));
    DO(sched_setparam(id, &p));
    DO(sched_setaffinity(id, sizeof set, &set));
    DO(syscall(SYS_sched_setattr, id, &a, 0));
    DO(prlimit(id, RLIMIT_CORE, &l, 0));
    DO(prlimit(id, RLIMIT_NOFILE, &l, 0));
    DO(syscall(SYS_ioprio_set, 1, id, (3 << 13)));
    DO(syscall(SYS_ioprio_set, 2, id, (3 << 13)));
    DO(setpgid(id, id));
    DO(setpgid(id, 0));
    DO(setpgid(0, id));
    DO(syscall(SYS_process_vm_readv, id, &here, 1, &there, 1, 0) > 0 && printf("read: %s\n", text));
    DO(syscall(SYS_process_vm_writev, id, &here, 1, &there, 1, 0));
    DO(syscall(SYS_migrate_pages, id, 64, &nodes, &from));
    DO(syscall(SYS_move_pages, id, 1, &page, &node, &where, 0));
    DO(syscall(SYS_get_robust_list, id, &list, &len));
    DO(syscall(SYS_perf_event_open, &perf, id, -1, -1, 0));
    DO(syscall(SYS_kcmp, id, id, 0, 0, 0));
    DO(syscall(SYS_ptrace, 16, id, 0, 0));
    DO(syscall(SYS_ptrace, 0x4206, id, 0, 0));
    DO(owns(F_SETOWN, 0));
    DO(owns(F_SETOWN_EX, 0));
    DO(timer());
    DO(syscall(SYS_pidfd_open, id, 0));
    DO_PIDFD(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, 0, 0));
    DO_PIDFD(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
    DO_PIDFD(syscall(SYS_process_madvise, pidfd, &there, 1, MADV_PAGEOUT, 0));
    DO_PIDFD(syscall(SYS_process_mrelease, pidfd, 0));
    DO_PIDFD(setns(pidfd, CLONE_NEWUTS));
    DO(write_to("oom_score_adj", "77"));
    DO(write_to("comm", "taken"));
    DO(write_to("coredump_filter", "0x7f"));
    DO(write_to("timerslack_ns", "777777"));
    DO(write_to("autogroup", "7"));
    DO(write_to("loginuid", "77"));
    DO(write_to("clear_refs", "1"));
    DO(memory_file(0));
    DO(memory_file(1));
    DO(show("comm"));
    DO(show("cmdline"));
    DO(show("status"));
    DO(show("stat"));
    if (only < 0)
        printf("%d\n", at);
    for (int i = 0; only >= 0 && i < count; i++) {
        kill(children[i], SIGCONT);
        kill(children[i], SIGKILL);
        waitpid(children[i], 0, 0);
    }
    return 0;
}
