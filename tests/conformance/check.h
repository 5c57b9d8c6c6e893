// What the programs of this directory share. Each prints a line for each check: `name: result errno ...`. They are run natively
// and under vsrun, and must print the same; a check whose native result differs from run to run does not belong here.
#ifndef CHECK_H
#define CHECK_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The group that is being checked; its lines begin with it.
static const char *group = "";

__attribute__((unused, format(printf, 1, 2))) static void say(const char *format, ...) {
    char line[512];
    int n = snprintf(line, sizeof line, "%s/", group);
    va_list list;
    va_start(list, format);
    n += vsnprintf(line + n, sizeof line - n - 1, format, list);
    va_end(list);
    line[n++] = '\n';
    if (write(1, line, n) != n) _exit(99);
}

// What a call gave: its result, and its error where it failed.
__attribute__((unused)) static void gave(const char *name, long result) {
    if (result == -1)
        say("%s: -1 %s", name, strerrorname_np(errno));
    else
        say("%s: %ld", name, result);
}

// The same for functions that give the error itself.
__attribute__((unused)) static void number(const char *name, int error) {
    const char *word = strerrorname_np(error);
    say("%s: %s", name, error && word ? word : error ? "?" : "0");
}

#define CHECK(call) (errno = 0, gave(#call, (long)(call)))
// With a name of its own, where the words of the call are not enough.
#define NAMED(name, call) (errno = 0, gave(name, (long)(call)))
#define NUMBER(call) number(#call, call)
// Whether it went well, where what it gives is a number that is not the same each time.
#define FINE(call) (errno = 0, gave(#call, (long)(call) == -1 ? -1 : 0))

// A group of checks.
struct group {
    const char *name;
    void (*run)(void);
};

// Runs the groups: all, but for those named by arguments with a minus; or only those named by arguments with a plus.
__attribute__((unused)) static int run_groups(const struct group *groups, int argc, char **argv) {
    for (; groups->name; groups++) {
        int only = 0, chosen = 0, left_out = 0;
        for (int i = 1; i < argc; i++) {
            int same = !strcmp(argv[i] + 1, groups->name);
            only |= argv[i][0] == '+';
            chosen |= argv[i][0] == '+' && same;
            left_out |= argv[i][0] == '-' && same;
        }
        if (left_out || (only && !chosen)) continue;
        group = groups->name;
        groups->run();
    }
    return 0;
}

// Runs `run` in a process of its own and says how that ended.
__attribute__((unused)) static void in_child(void (*run)(void)) {
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) say("ended with status %x", status);
}

#endif
