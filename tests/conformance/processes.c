// Processes: ids, groups, waiting, priorities, limits.
#include "check.h"
#include <linux/capability.h>

static void waits(void) {
    int status = 77;
    CHECK(wait(&status));
    CHECK(waitpid(-1, &status, WNOHANG));
    CHECK(waitpid(1 << 29, &status, 0));
    CHECK(waitpid(-1, &status, 0x100));
    CHECK(waitpid(-2147483647 - 1, &status, 0));
    siginfo_t info = {.si_pid = 77};
    CHECK(waitid(P_ALL, 0, &info, WEXITED));
    CHECK(waitid(P_ALL, 0, &info, 0));
    CHECK(waitid(P_ALL, 0, &info, WEXITED | 0x100));
    CHECK(waitid(99, 0, &info, WEXITED));
    CHECK(waitid(P_PID, 0, &info, WEXITED));
    CHECK(waitid(P_PID, -1, &info, WEXITED));
    CHECK(waitid(P_PGID, -1, &info, WEXITED));
    pid_t child = fork();
    if (child == 0) _exit(300);
    CHECK(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    say("signo %d, code %d, pid %d, uid %d, status %d", info.si_signo, info.si_code, info.si_pid == child,
        info.si_uid == getuid(), info.si_status);
    CHECK(waitpid(child, &status, 0) == child);
    say("status %x", status);
    CHECK(waitpid(child, &status, 0));
    child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        kill(getpid(), SIGTERM);
        _exit(0);
    }
    CHECK(waitid(P_ALL, 0, &info, WEXITED));
    say("code %d, pid %d, status %d", info.si_code, info.si_pid == child, info.si_status);
    // It is there until it has been seen to go on.
    int seen[2];
    CHECK(pipe(seen));
    child = fork();
    if (child == 0) {
        char byte;
        raise(SIGSTOP);
        _exit(read(seen[0], &byte, 1) == 1 ? 5 : 6);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    say("status %x", status);
    kill(child, SIGCONT);
    CHECK(waitid(P_PID, child, &info, WCONTINUED));
    say("code %d, status %d", info.si_code, info.si_status);
    CHECK(write(seen[1], "x", 1));
    close(seen[0]), close(seen[1]);
    CHECK(waitpid(child, &status, 0) == child);
    say("status %x", status);
    signal(SIGCHLD, SIG_IGN);
    child = fork();
    if (child == 0) _exit(5);
    CHECK(waitpid(child, &status, 0));
    signal(SIGCHLD, SIG_DFL);
}

static void ids(void) {
    CHECK(getpgid(0) == getpgrp());
    CHECK(getpgid(getpid()) == getpgrp());
    CHECK(getpgid(-1));
    CHECK(getpgid(1 << 29));
    CHECK(getsid(0) == getsid(getpid()));
    CHECK(getsid(1 << 29));
    CHECK(gettid() == getpid());
    CHECK(syscall(SYS_set_tid_address, 0) == gettid());
    CHECK(setpgid(0, -1));
    CHECK(setpgid(-1, 0));
    CHECK(setpgid(1 << 29, 0));
    CHECK(setpgid(0, 1 << 29));
    pid_t child = fork();
    if (child == 0) {
        say("ppid %d", getppid() > 1);
        CHECK(setpgid(0, 0));
        CHECK(getpgrp() == getpid());
        CHECK(setsid());
        pid_t next = fork();
        if (next == 0) {
            CHECK(setsid() == getpid());
            CHECK(getsid(0) == getpid());
            CHECK(getpgrp() == getpid());
            CHECK(setsid());
            CHECK(setpgid(0, 0));
            CHECK(setpgid(0, getppid()));
            _exit(0);
        }
        waitpid(next, 0, 0);
        _exit(0);
    }
    waitpid(child, 0, 0);
    CHECK(setpgid(child, 0));
}

static void own(void) {
    // By 0 and by the process's own id.
    for (int i = 0; i < 2; i++) {
        pid_t id = i ? getpid() : 0;
        struct sched_param p = {0};
        CHECK(sched_getscheduler(id));
        CHECK(sched_getparam(id, &p));
        say("priority %d", p.sched_priority);
        p.sched_priority = 0;
        CHECK(sched_setparam(id, &p));
        CHECK(sched_setscheduler(id, SCHED_BATCH, &p));
        CHECK(sched_getscheduler(id));
        CHECK(sched_setscheduler(id, SCHED_OTHER, &p));
        p.sched_priority = 1;
        CHECK(sched_setscheduler(id, SCHED_OTHER, &p));
        CHECK(sched_setparam(id, &p));
        p.sched_priority = 100;
        CHECK(sched_setscheduler(id, SCHED_FIFO, &p));
        CHECK(sched_setscheduler(id, 99, &p));
        CHECK(sched_setscheduler(id, -1, &p));
        struct timespec t;
        CHECK(sched_rr_get_interval(id, &t));
        cpu_set_t set;
        CPU_ZERO(&set);
        CHECK(sched_setaffinity(id, sizeof set, &set));
        CHECK(syscall(SYS_sched_getaffinity, id, 3, &set));
        CHECK(syscall(SYS_sched_getaffinity, id, 12, &set));
        CHECK(sched_getaffinity(id, sizeof set, &set));
        CHECK(getpriority(PRIO_PROCESS, id));
        CHECK(setpriority(PRIO_PROCESS, id, 5));
        CHECK(getpriority(PRIO_PROCESS, id));
        CHECK(setpriority(PRIO_PROCESS, id, 100));
        CHECK(getpriority(PRIO_PROCESS, id));
        struct rlimit l;
        CHECK(prlimit(id, RLIMIT_CORE, 0, &l));
        l.rlim_cur = 0;
        CHECK(prlimit(id, RLIMIT_CORE, &l, 0));
        CHECK(prlimit(id, 99, 0, &l));
        l = (struct rlimit){2, 1};
        CHECK(prlimit(id, RLIMIT_CORE, &l, 0));
        struct {
            uint32_t size, policy;
            uint64_t flags;
            int32_t nice;
            uint32_t priority;
            uint64_t times[3];
        } a = {0};
        CHECK(syscall(SYS_sched_getattr, id, &a, 48, 0));
        say("policy %u, nice %d, priority %u", a.policy, a.nice, a.priority);
        CHECK(syscall(SYS_sched_getattr, id, &a, 40, 0));
        CHECK(syscall(SYS_sched_getattr, id, &a, 48, 1));
        a.nice = 19;
        CHECK(syscall(SYS_sched_setattr, id, &a, 0));
        CHECK(syscall(SYS_sched_setattr, id, &a, 1));
        CHECK(syscall(SYS_sched_setattr, id, 0, 0));
        CHECK(syscall(SYS_ioprio_get, 1, id) >= 0);
        struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, id};
        struct __user_cap_data_struct data[2];
        CHECK(syscall(SYS_capget, &header, data));
        CHECK(syscall(SYS_capset, &header, data));
    }
    CHECK(getpriority(99, 0));
    CHECK(setpriority(99, 0, 0));
    CHECK(setpriority(-1, 0, 0));
    struct rusage u;
    CHECK(getrusage(RUSAGE_SELF, &u));
    CHECK(getrusage(RUSAGE_CHILDREN, &u));
    CHECK(getrusage(RUSAGE_THREAD, &u));
    CHECK(getrusage(99, &u));
    CHECK(sched_get_priority_max(SCHED_FIFO));
    CHECK(sched_get_priority_min(SCHED_FIFO));
    CHECK(sched_get_priority_max(99));
}

static void in_a_child(void) {
    CHECK(getpriority(PRIO_PROCESS, 0));
    CHECK(sched_getscheduler(0));
}

static void of_children(void) {
    struct sched_param p = {0};
    in_child(in_a_child);
    int hold[2];
    pipe(hold);
    pid_t child = fork();
    if (child == 0) {
        char c;
        close(hold[1]);
        read(hold[0], &c, 1);
        in_a_child();
        _exit(0);
    }
    CHECK(getpriority(PRIO_PROCESS, child));
    CHECK(setpriority(PRIO_PROCESS, child, 19));
    CHECK(getpriority(PRIO_PROCESS, child));
    CHECK(sched_setscheduler(child, SCHED_BATCH, &p));
    CHECK(sched_getscheduler(child));
    struct rlimit l;
    CHECK(prlimit(child, RLIMIT_CORE, 0, &l));
    CHECK(getpgid(child) == getpgrp());
    close(hold[1]);
    close(hold[0]);
    waitpid(child, 0, 0);
}

static void of_nobody(void) {
    struct sched_param p = {0};
    struct rlimit l;
    cpu_set_t set;
    struct timespec t;
    static const pid_t ids[] = {-1, 1 << 29};
    for (int i = 0; i < 2; i++) {
        pid_t id = ids[i];
        CHECK(sched_getscheduler(id));
        CHECK(sched_setscheduler(id, SCHED_OTHER, &p));
        CHECK(sched_getparam(id, &p));
        CHECK(sched_setparam(id, &p));
        CHECK(sched_rr_get_interval(id, &t));
        CHECK(sched_getaffinity(id, sizeof set, &set));
        CHECK(getpriority(PRIO_PROCESS, id));
        CHECK(setpriority(PRIO_PROCESS, id, 0));
        CHECK(getpriority(PRIO_PGRP, id));
        CHECK(prlimit(id, RLIMIT_CORE, 0, &l));
        CHECK(syscall(SYS_ioprio_get, 1, id));
        struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, id};
        struct __user_cap_data_struct data[2];
        CHECK(syscall(SYS_capget, &header, data));
    }
}

static void limits(void) {
    struct rlimit l, old;
    CHECK(getrlimit(99, &l));
    CHECK(setrlimit(99, &l));
    CHECK(getrlimit(RLIMIT_NOFILE, &old));
    l = (struct rlimit){8, old.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &l));
    int p[2], made = 0;
    while (made < 20 && dup(0) >= 0) made++;
    say("made %d", made > 0 && made < 8);
    CHECK(pipe(p));
    CHECK(socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK(eventfd(0, 0));
    CHECK(epoll_create1(0));
    CHECK(fcntl(0, F_DUPFD, 0));
    CHECK(fcntl(0, F_DUPFD, 8));
    CHECK(dup2(0, 8));
    CHECK(setrlimit(RLIMIT_NOFILE, &old));
    for (int fd = 3; fd < 8; fd++) close(fd);
    CHECK(umask(022) >= 0);
    CHECK(umask(0777));
    CHECK(umask(022));
}

// What a process's last child wants is told to nobody.
static void death_signal(void) {
    pid_t child = fork();
    if (child == 0) {
        pid_t next = fork();
        if (next == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (getppid() > 1) usleep(1000);
            _exit(0);
        }
        usleep(100000);
        _exit(0);
    }
    waitpid(child, 0, 0);
    say("over");
}

static void subreaper(void) {
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int value;
    CHECK(prctl(PR_GET_CHILD_SUBREAPER, &value));
    say("subreaper %d", value);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) _exit(3);
        _exit(4);
    }
    CHECK(waitpid(child, 0, 0) == child);
    CHECK(wait(0) > 0);
}

static const struct group groups[] = {
    {"waits", waits},         {"ids", ids},       {"own", own},
    {"of_children", of_children}, {"of_nobody", of_nobody}, {"limits", limits},
    {"death_signal", death_signal}, {"subreaper", subreaper}, {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
