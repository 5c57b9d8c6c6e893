/* A server: a child that writes to a pipe, two workers that take jobs, and a reporter that locks in another order. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int jobs, done, ends[2];
static volatile sig_atomic_t told;

static void tell(int signal)
{
    told = signal;
}

static void take_job(void)
{
    pthread_mutex_lock(&queue_lock);
    while (jobs == 0)
        pthread_cond_wait(&not_empty, &queue_lock);
    jobs--;
    pthread_mutex_lock(&stats_lock); /* the queue is held */
    done++;
    pthread_mutex_unlock(&stats_lock);
    pthread_mutex_unlock(&queue_lock);
}

static void *worker(void *unused)
{
    char c;
    take_job();
    return read(ends[0], &c, 1) == 1 ? unused : NULL;
}

static void *reporter(void *unused)
{
    printf("<script>console.error('printed')</script> & \"done\"\n");
    fflush(stdout);
    pthread_mutex_lock(&stats_lock);
    pthread_mutex_lock(&queue_lock); /* the statistics are held */
    pthread_mutex_unlock(&queue_lock);
    pthread_mutex_unlock(&stats_lock);
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    signal(SIGUSR1, tell);
    if (pipe(ends))
        return 2;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "<b>&'");
        kill(parent, SIGUSR1);
        _exit(write(ends[1], "ab", 2) != 2);
    }
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, worker, NULL);
    pthread_create(&threads[2], NULL, reporter, NULL);
    pthread_mutex_lock(&queue_lock);
    jobs = 2;
    pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&queue_lock);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    waitpid(child, NULL, 0);
    return 0;
}
