/* Functions of all kinds of which an annotation file says something: two threads use a counter under a lock. Compiled in several ways. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

volatile int counter[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t done;
static int broken;

/* Two bytes and one: nothing can be put in their place but traps. */
__asm__(".text\n.globl bare_enter\n.type bare_enter, @function\nbare_enter: nop\nret\n.size bare_enter, . - bare_enter\n"
        ".globl bare_leave\n.type bare_leave, @function\nbare_leave: ret\n.size bare_leave, . - bare_leave\n"
        ".globl beside\n.type beside, @function\nbeside: ret\n.size beside, . - beside\n");
void bare_enter(void);
void bare_leave(void);

/* Its first instruction uses memory that others use, and it returns at several places. */
FUNCTION int read_first(volatile int *p, int which)
{
    if (p[0] == which)
        return 1;
    bare_enter();
    return p[1] == which ? 2 : 3;
}

FUNCTION int enter(int tries)
{
    if (tries == 0)
        return 0;
    return pthread_mutex_lock(&lock) == 0;
}

FUNCTION int leave(volatile int *what, unsigned long bytes)
{
    return what ? pthread_mutex_unlock(&lock) + (bytes == 0) : -1;
}

/* At -O2 it ends in a jump. */
FUNCTION int jumps(volatile int *what, unsigned long bytes) { return leave(what, bytes); }

static void *counts(void *early)
{
    enter(1 + broken);
    bare_enter();
    counter[0] = counter[0] + 1;
    counter[1] = read_first(counter, 7);
    if (broken && early) {
        jumps(counter, sizeof counter);
        counter[0] = counter[0] + 1;
    } else {
        bare_leave();
        jumps(counter, sizeof counter);
    }
    sem_post(&done);
    return NULL;
}

static void two(void)
{
    pthread_t threads[2];
    sem_init(&done, 0, 0);
    for (long n = 0; n < 2; n++)
        pthread_create(&threads[n], NULL, counts, (void *) n);
    for (int n = 0; n < 2; n++)
        pthread_join(threads[n], NULL);
}

int main(int count, char **arguments)
{
    broken = count > 1 && strstr(arguments[1], "broken");
    if (count > 1 && strstr(arguments[1], "child")) {
        int status = 0;
        if (fork() == 0) {
            two();
            _exit(0);
        }
        return wait(&status) < 0 || status;
    }
    two();
    return 0;
}
