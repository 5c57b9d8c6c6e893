/* Programs that harm themselves and whoever runs them, by name: hostile NAME. Natively some end at once, some never. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char *self;

static void *locks(void *arg)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}

static void two_threads(void)
{
    pthread_t t;
    pthread_create(&t, NULL, locks, NULL);
    locks(NULL);
    pthread_join(t, NULL);
}

static void bomb(void) { for (;;) fork(); }
static void bomb_of_threads(void) { for (;;) { pthread_t t; pthread_create(&t, NULL, locks, NULL); } }
static void killer(void) { kill(-1, SIGKILL); }
static void kills_parent(void) { kill(getppid(), SIGKILL); }
static void kills_group(void) { kill(0, SIGTERM); }
static void closes_all(void) { for (int fd = 0; fd < 1024; fd++) close(fd); close_range(3, ~0U, 0); two_threads(); }
static void eats(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }
static void prints(void) { static char b[1 << 20]; memset(b, 'x', sizeof b); for (;;) if (write(1, b, sizeof b) < 0) _exit(1); }
static void stops(void) { two_threads(); raise(SIGSTOP); }
static void spins(void) { for (volatile int i = 1; i;) {} }
static void recurses(void) { volatile char room[4096]; room[0] = 1; recurses(); room[1] = 2; }
static void execs_itself(void) { execl("/proc/self/exe", self, "execs_itself", (char *)NULL); }
static void traces(void) { ptrace(PTRACE_TRACEME, 0, 0, 0); ptrace(PTRACE_ATTACH, getppid(), 0, 0); two_threads(); }
static void forbids(void) { struct rlimit none = {0, 0}; for (int i = 0; i < 16; i++) setrlimit(i, &none); two_threads(); fork(); }
static void drops_core(void) { struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}; setrlimit(RLIMIT_CORE, &all); *(volatile int *)8 = 1; }
static void unmaps(void) { for (uintptr_t at = 0x10000; at < 0x7fff00000000; at += 1UL << 40) munmap((void *)at, 1UL << 40); two_threads(); }
static void scribbles(void) { two_threads(); memset((void *)0x200000000000, 0xff, 1 << 16); two_threads(); }
static void scribbles_late(void) { two_threads(); memset((void *)0x200000001000, 0x41, 1 << 20); pthread_exit(NULL); }
static void writes_own_memory(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    uint64_t junk[64];
    memset(junk, 0x41, sizeof junk);
    two_threads();
    pwrite(fd, junk, sizeof junk, 0x200000000000);
    two_threads();
}
static void blocks_all(void) { sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, NULL); two_threads(); pause(); }
static void raises_all(void) { for (int s = 1; s < 65; s++) if (fork() == 0) { raise(s); _exit(0); } while (wait(NULL) > 0) {} }
static void handled(int s) { (void)s; two_threads(); }
static void handles_faults(void) { signal(SIGSEGV, handled); signal(SIGSYS, handled); signal(SIGTRAP, handled); raise(SIGSYS); raise(SIGTRAP); raise(SIGSEGV); }
static void orphans(void) { if (fork() == 0) { setsid(); if (fork() == 0) for (;;) pause(); _exit(0); } wait(NULL); }
static void vanishes(void) { unlink(self); chdir("/"); chroot("/"); two_threads(); execl(self, self, "spins", (char *)NULL); }
static void dies_with(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); prctl(PR_SET_DUMPABLE, 0); two_threads(); }
static void lies_down(void) { sched_yield(); for (;;) sched_yield(); }
static void raw_clone(void) { syscall(SYS_clone, CLONE_VM | CLONE_SIGHAND, 0, 0, 0, 0); two_threads(); }

static const struct { const char *name; void (*run)(void); } ALL[] = {
#define ONE(name) { #name, name }
    ONE(bomb), ONE(bomb_of_threads), ONE(killer), ONE(kills_parent), ONE(kills_group), ONE(closes_all), ONE(eats),
    ONE(prints), ONE(stops), ONE(spins), ONE(recurses), ONE(execs_itself), ONE(traces), ONE(forbids), ONE(drops_core),
    ONE(unmaps), ONE(scribbles), ONE(scribbles_late), ONE(writes_own_memory), ONE(blocks_all), ONE(raises_all),
    ONE(handles_faults), ONE(orphans), ONE(vanishes), ONE(dies_with), ONE(lies_down), ONE(raw_clone),
};

int main(int argc, char **argv)
{
    self = argv[0];
    for (unsigned i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        if (argc < 2)
            puts(ALL[i].name);
        else if (strcmp(argv[1], ALL[i].name) == 0)
            ALL[i].run();
    }
    return 0;
}
