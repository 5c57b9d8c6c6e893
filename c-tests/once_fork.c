/* A process forks while another of its threads runs the initializer of a once control, or in that initializer: the child has not begun it
 * (glibc's fork generation), and runs it again. */
#include "t.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t in, out;
static int runs;
static pid_t child = -1;

static void beside(void)
{
    runs++;
    sem_post(&in);
    sem_wait(&out);
}

static void within(void)
{
    if (runs++ == 0) child = fork();
}

static void *enters(void *unused)
{
    pthread_once(&once, beside);
    return unused;
}

int main(int argc, char **argv)
{
    int status;
    pthread_t t;
    MUST(sem_init(&in, 0, 0));
    MUST(sem_init(&out, 0, 0));
    if (arg_is(argc, argv, "within")) {
        pthread_once(&once, within);
        if (child == 0) {
            pthread_once(&once, within);
            _exit(runs);
        }
        MUST(waitpid(child, &status, 0) != child);
        assert(WEXITSTATUS(status) == 1);
        return 0;
    }
    t = go(enters, NULL);
    if (!arg_is(argc, argv, "any")) MUST(sem_wait(&in));
    child = fork();
    if (child == 0) {
        sem_post(&out);
        pthread_once(&once, beside);
        _exit(runs);
    }
    sem_post(&out);
    join(t);
    MUST(waitpid(child, &status, 0) != child);
    if (arg_is(argc, argv, "fixed")) assert(WEXITSTATUS(status) == 2);
    else assert(WEXITSTATUS(status) == 1);
    return 0;
}
