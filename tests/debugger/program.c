/* A bug of memory for each argument, for a debugger. "lost": an update is lost; "stored": each of two threads stores and does not see the other's
 * store; "freed": a thread reads what another one has freed. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int counter, x, y, not_x, not_y;
static int *block;
static volatile int done;

void bump(int *counter);
/* "incl (%rax)" has two bytes, what follows is jumped to, and a jump with those bytes behind it would lead below address 0, where this
 * program is not position-independent: so its patch is a trap. */
__asm__(".type bump,@function\nbump: mov %rdi,%rax\n jmp 1f\n2: ret\n1: incl (%rax)\n3: mov %rdi,%rax\n jmp 2b\n jmp 3b\n"
        ".size bump,.-bump\n");

static void *adds(void *unused)
{
    bump(&counter);
    if (done++ == 1) assert(counter == 2);
    return unused;
}

static void *sets_x(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_RELAXED);
    not_y = !__atomic_load_n(&y, __ATOMIC_RELAXED);
    return unused;
}

static void *sets_y(void *unused)
{
    __atomic_store_n(&y, 1, __ATOMIC_RELAXED);
    not_x = !__atomic_load_n(&x, __ATOMIC_RELAXED);
    return unused;
}

static void *frees(void *unused)
{
    free(block);
    return unused;
}

static void *reads(void *unused)
{
    counter = *block;
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    int stored = !strcmp(argv[1], "stored"), freed = !strcmp(argv[1], "freed");
    pthread_t one, two;
    block = calloc(1, 100);
    pthread_create(&one, 0, stored ? sets_x : freed ? frees : adds, 0);
    pthread_create(&two, 0, stored ? sets_y : freed ? reads : adds, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    assert(!not_x || !not_y);
    return 0;
}
