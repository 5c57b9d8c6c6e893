// Tries everything on the process whose id is its argument, which is none of the program's: prints what it could do.
#include "../check.h"
#include <linux/capability.h>

int main(int argc, char **argv) {
    pid_t id = argc > 1 ? atoi(argv[1]) : 0;
    struct sched_param p = {0};
    struct rlimit l = {77, 77};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } a = {.size = 48, .policy = 3, .nice = 7};
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)4096, 1};
    group = "outside";
    CHECK(kill(id, 0));
    CHECK(kill(id, SIGKILL));
    CHECK(kill(-id, SIGKILL));
    CHECK(syscall(SYS_tkill, id, SIGKILL));
    CHECK(syscall(SYS_tgkill, id, id, SIGKILL));
    CHECK(sigqueue(id, SIGKILL, (union sigval){0}));
    CHECK(setpriority(PRIO_PROCESS, id, 11));
    CHECK(setpriority(PRIO_PGRP, id, 11));
    CHECK(sched_setscheduler(id, SCHED_BATCH, &p));
    CHECK(sched_setparam(id, &p));
    CHECK(sched_setaffinity(id, sizeof set, &set));
    CHECK(syscall(SYS_sched_setattr, id, &a, 0));
    CHECK(prlimit(id, RLIMIT_CORE, &l, 0));
    CHECK(syscall(SYS_ioprio_set, 1, id, (3 << 13)));
    CHECK(setpgid(id, id));
    CHECK(getpgid(id));
    CHECK(getsid(id));
    CHECK(waitpid(id, 0, WNOHANG));
    CHECK(syscall(SYS_process_vm_readv, id, &here, 1, &there, 1, 0));
    CHECK(syscall(SYS_process_vm_writev, id, &here, 1, &there, 1, 0));
    CHECK(syscall(SYS_ptrace, 16, id, 0, 0));
    CHECK(syscall(SYS_pidfd_open, id, 0));
    return 0;
}
