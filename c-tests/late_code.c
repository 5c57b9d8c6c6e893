/* Code that comes while the program runs, or that the program has written itself, is not watched: whoever comes to threads or memory that others
 * reach with it is told, and nothing is called complete. By argument: a library that is opened in another namespace (those in the program's
 * own are watched: late_library); a program that is executed, by a child, a child of vfork or posix_spawn; memory that gets executable in each way there is; a function that the
 * program writes over, through mprotect, /proc/self/mem or where it lies in memory that can be written; what a constructor has made. */
#include "t.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static int counter;

/* mov (%rdi),%eax; inc %eax; mov %eax,(%rdi); ret */
static const unsigned char code[] = {0x8b, 0x07, 0xff, 0xc0, 0x89, 0x07, 0xc3};

__attribute__((noinline, aligned(4096))) static void counts(int *where)
{
    (void)where;
    __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
}

/* Data lies behind it. */
__attribute__((noinline, aligned(4096))) static void behind(void)
{
    __asm__ volatile("nop");
}

#ifdef WRITABLE
__attribute__((noinline, section(".writable,\"awx\",@progbits#"))) static void written(int *where)
{
    ++*where;
}
#endif

static void (*bump)(int *) = counts;

static void *made_early;

__attribute__((constructor)) static void begins(int argc, char **argv)
{
    if (!arg_is(argc, argv, "early")) return;
    made_early = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mprotect(memcpy(made_early, code, sizeof code), 4096, PROT_READ | PROT_EXEC));
}

static void *calls(void *unused)
{
    bump(&counter);
    return unused;
}

static int both(void)
{
    pthread_t one = go(calls, NULL), two = go(calls, NULL);
    join(one), join(two);
    return 0;
}

static int of_child(pid_t child)
{
    int status;
    assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static void *memory(int how)
{
    void *at = mmap(NULL, 4096, how, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(at != MAP_FAILED);
    return memcpy(at, code, sizeof code);
}

int main(int argc, char **argv)
{
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC, text = PROT_READ | PROT_EXEC, data = PROT_READ | PROT_WRITE;
    char *again[] = {argv[0], "plain", NULL};
    if (arg_is(argc, argv, "namespace")) assert(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW));
    if (arg_is(argc, argv, "exec")) execv(argv[0], again);
    if (arg_is(argc, argv, "child-execs") || arg_is(argc, argv, "vfork")) {
        pid_t child = arg_is(argc, argv, "vfork") ? vfork() : fork();
        if (child == 0) execv(argv[0], again), _exit(1);
        return of_child(child);
    }
    if (arg_is(argc, argv, "spawn")) {
        pid_t child;
        MUST(posix_spawn(&child, argv[0], NULL, NULL, again, environ));
        return of_child(child);
    }
    if (arg_is(argc, argv, "anonymous")) bump = memory(all);
    if (arg_is(argc, argv, "mprotect")) MUST(mprotect(bump = memory(data), 4096, text));
    if (arg_is(argc, argv, "pkey")) MUST(pkey_mprotect(bump = memory(data), 4096, text, -1));
    if (arg_is(argc, argv, "file")) {
        int file = memfd_create("code", 0);
        assert(write(file, code, sizeof code) == sizeof code);
        assert((bump = mmap(NULL, 4096, text, MAP_PRIVATE, file, 0)) != MAP_FAILED);
    }
    if (arg_is(argc, argv, "itself")) {
        MUST(mprotect(counts, 4096, data));
        memcpy(counts, code, sizeof code);
        MUST(mprotect(counts, 4096, text));
    }
    if (arg_is(argc, argv, "memory")) {
        int file = open("/proc/self/mem", O_RDWR);
        assert(pwrite(file, code, sizeof code, (off_t)counts) == sizeof code);
    }
#ifdef WRITABLE
    if (arg_is(argc, argv, "writable")) bump = memcpy(written, code, sizeof code);
#endif
    if (made_early) bump = made_early;
    if (argc > 9) behind();
    return both();
}
