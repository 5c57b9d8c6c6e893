// decoys FIRST COUNT COMMAND..: processes that have the numbers from FIRST on, as far as these are free, beside a command. Prints how
// many there are and what is different of them when the command has ended. Status 77: numbers may not be chosen here.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

// Memory of every decoy, at an address that children.c has something at too.
#define MEMORY ((char *)0x2000000000)

static pid_t with_number(pid_t number) {
    struct clone_args a = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1};
    return syscall(SYS_clone3, &a, sizeof a);
}

static void add(char *to, size_t room, pid_t id, const char *name) {
    char path[64];
    size_t used = strlen(to);
    snprintf(path, sizeof path, "/proc/%d/%s", id, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, to + used, room - used - 1);
    to[used + (n > 0 ? n : 0)] = 0;
    close(fd);
}

// What others could change of a process, as text. Times and counts of switches change by themselves.
static char *account(pid_t id) {
    static const char *lines[] = {"Name", "State", "Tgid", "PPid", "TracerPid", "Uid", "NSpgid", "NSsid", "Threads", "SigPnd",
        "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "Cpus_allowed", "Mems_allowed", "CoreDumping", "VmSize", 0};
    static const char *files[] = {"comm", "limits", "oom_score_adj", "coredump_filter", "timerslack_ns", "cmdline", "autogroup",
        "loginuid", "cgroup", 0};
    size_t room = 1 << 14;
    char *text = calloc(1, room), *status = calloc(1, room), *line, *rest = status;
    add(status, room, id, "status");
    while ((line = strsep(&rest, "\n")))
        for (int i = 0; lines[i]; i++)
            if (!strncmp(line, lines[i], strlen(lines[i])) && line[strlen(lines[i])] == ':')
                snprintf(text + strlen(text), room - strlen(text), "%s\n", line);
    for (int i = 0; files[i]; i++)
        add(text, room, id, files[i]);
    struct sched_param p = {0};
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t times[3];
    } a = {.size = 48};
    sched_getparam(id, &p);
    syscall(SYS_sched_getattr, id, &a, sizeof a, 0);
    snprintf(text + strlen(text), room - strlen(text), "nice %d, io %ld, policy %d, priority %d, flags %lu, group %d, session %d\n",
        getpriority(PRIO_PROCESS, id), syscall(SYS_ioprio_get, 1, id), sched_getscheduler(id), p.sched_priority,
        (unsigned long)a.flags, getpgid(id), getsid(id));
    free(status);
    return text;
}

int main(int argc, char **argv) {
    pid_t first = argc > 3 ? atoi(argv[1]) : 0, decoy[MOST];
    int count = argc > 3 ? atoi(argv[2]) : 0, n = 0, told[2], wrong = 0;
    char *before[MOST], byte;
    char *memory = mmap(MEMORY, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MEMORY || count <= 0 || count > MOST || pipe(told) != 0)
        return 2;
    strcpy(memory, "decoy");
    for (int i = 0; i < count; i++) {
        pid_t id = with_number(first + i);
        if (id == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_NAME, "decoy");
            // Somebody may change the memory: it says so itself.
            close(told[0]);
            if (write(told[1], "x", 1) != 1)
                _exit(3);
            while (!strcmp(memory, "decoy"))
                usleep(20000);
            _exit(4);
        }
        if (id < 0 && errno != EEXIST)
            return errno == EPERM ? 77 : 2;
        if (id > 0)
            decoy[n++] = id;
    }
    for (int i = 0; i < n; i++)
        if (read(told[0], &byte, 1) != 1)
            return 2;
    usleep(50000);
    for (int i = 0; i < n; i++)
        before[i] = account(decoy[i]);
    pid_t command = fork();
    if (command == 0) {
        close(told[0]);
        close(told[1]);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    if (waitpid(command, &status, 0) != command)
        return 2;
    usleep(50000);
    printf("decoys: %d\n", n);
    for (int i = 0; i < n; i++) {
        int s;
        if (waitpid(decoy[i], &s, WNOHANG | WUNTRACED | WCONTINUED) != 0) {
            printf("different: %d has changed its state to %x\n", decoy[i], s);
            wrong = 1;
        }
        char *after = account(decoy[i]), *a = before[i], *b = after, *x, *y;
        // A sleep may be seen or not.
        while ((x = strsep(&a, "\n")) && (y = strsep(&b, "\n")))
            if (strcmp(x, y) && strncmp(x, "State", 5)) {
                printf("different: %d had %s, and has %s\n", decoy[i], x, y);
                wrong = 1;
            }
        kill(decoy[i], SIGKILL);
        waitpid(decoy[i], 0, 0);
    }
    return wrong;
}
