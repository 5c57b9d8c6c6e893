/* Variables whose uses --watch tells: plain, locked, by libc, by the kernel, in a child, in parts. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int total;
static long pair[2];
char text[24] __attribute__((aligned(8)));
int *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, noclone)) static int look(void)
{
    return *(volatile int *)&total;
}

__attribute__((noinline, noclone)) static void set(int value)
{
    *(volatile int *)&total = value;
}

__attribute__((noinline, noclone)) static void add(int value)
{
    __atomic_fetch_add(&total, value, __ATOMIC_SEQ_CST);
}

static void *counts(void *arg)
{
    pthread_mutex_lock(&lock);
    set(look() + 1);
    pthread_mutex_unlock(&lock);
    return arg;
}

__attribute__((noinline, noclone)) static void copies(void)
{
    memcpy(text, "0123456789abcdef", 16);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "threads")) {
        pthread_t a, b;
        pthread_create(&a, 0, counts, 0);
        pthread_create(&b, 0, counts, 0);
        pthread_join(a, 0);
        pthread_join(b, 0);
        add(5);
        assert(total != 7);
    }
    if (!strcmp(what, "kernel")) {
        int ends[2];
        if (pipe(ends) != 0)
            return 1;
        if (write(ends[1], "\1\2\3\4", 4) != 4 || read(ends[0], &total, 4) != 4)
            return 1;
        set(look());
    }
    if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            set(3);
            _exit(look());
        }
        waitpid(child, 0, 0);
        set(4);
    }
    if (!strcmp(what, "parts"))
        *(volatile long *)&pair[1] = 9;
    if (!strcmp(what, "text"))
        copies();
    return 0;
}
