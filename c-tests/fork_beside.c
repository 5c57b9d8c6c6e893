// A child has a copy of what memory was like when it was forked: what another thread does under a lock is in it, or not. Buggy: it is
// taken to be in it. Number: the same, and the parent waits for the child by its number. Fixed: the thread has been joined before. Over: two
// threads are over when the child is made, so they do nothing beside it.
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *work(void *arg)
{
    pthread_mutex_lock(&m);
    done++;
    pthread_mutex_unlock(&m);
    return arg;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int joined = !strcmp(how, "fixed") || !strcmp(how, "over");
    int n = !strcmp(how, "over") ? 2 : 1, status;
    pthread_t t[2];

    for (int i = 0; i < n; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; joined && i < n; i++)
        pthread_join(t[i], NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(done);
    if (!strcmp(how, "number"))
        assert(waitpid(child, &status, 0) == child);
    else
        assert(wait(&status) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == n);
    for (int i = 0; !joined && i < n; i++)
        pthread_join(t[i], NULL);
    return 0;
}
