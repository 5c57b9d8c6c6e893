/* A process is killed while its threads end and are joined, by one whose wait a timer interrupts again and again.  A call that the killed
 * process would still have made is not taken to be possible once it is over. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t child;

static void tick(int unused)
{
    (void)unused;
    if (child != 0)
        kill((pid_t)child, SIGKILL);
}

static void *body(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
    struct itimerval second = { { 1, 0 }, { 1, 0 } };
    pthread_t thread;

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
    child = fork();
    if (child == 0) {
        if (pthread_create(&thread, NULL, body, NULL) != 0)
            abort();
        pthread_join(thread, NULL);
        _exit(0);
    }
    waitpid((pid_t)child, NULL, 0);
    return 0;
}
