/* Blocks of the heap that are freed and given out again: who compares addresses, or reads what the block before has left, tells that. */
#include "t.h"

struct session {
    long body[6];
    int user, serial, cancelled;
};

static struct session *session;
static int serial;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t freed, done;

static struct session *opened(int user)
{
    struct session *new = malloc(sizeof *new);
    new->user = user;
    new->serial = ++serial;
    return new;
}

/* It is the same session if it stands at the same place (buggy), or has the same number. */
static void *serves(void *by_number)
{
    pthread_mutex_lock(&lock);
    struct session *mine = session;
    int user = mine->user, number = mine->serial;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    if (by_number ? session->serial == number : session == mine)
        assert(session->user == user);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void sessions(void *by_number)
{
    session = opened(1);
    pthread_t thread = go(serves, by_number);
    pthread_mutex_lock(&lock);
    free(session);
    session = opened(2);
    pthread_mutex_unlock(&lock);
    join(thread);
}

/* The entry of what is gone is met by what comes to its place. */
static void *cached_for;
static int cached;

static void *remembers(void *of)
{
    pthread_mutex_lock(&lock);
    cached_for = of, cached = *(int *)of;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void cache(void)
{
    int *one = malloc(40);
    *one = 1;
    join(go(remembers, one));
    free(one);
    int *two = malloc(40);
    *two = 2;
    printf("%d\n", cached_for == two ? cached : *two);
}

/* The field of a new block is not set: it has what the one before has left. */
static void *cancels(void *unused)
{
    pthread_mutex_lock(&lock);
    if (session->user == 1)
        session->cancelled = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void field(void)
{
    session = opened(1);
    session->cancelled = 0;
    pthread_t thread = go(cancels, NULL);
    pthread_mutex_lock(&lock);
    free(session);
    session = opened(2);
    printf("%s\n", session->cancelled ? "skipped" : "run");
    pthread_mutex_unlock(&lock);
    join(thread);
}

static void *nothing(void *unused)
{
    return unused;
}

/* Made smaller, it may stay where it is. */
static void shrinks(void)
{
    pthread_t thread = go(nothing, NULL);
    char *before = malloc(200), *after = realloc(before, 150);
    printf("%s\n", after == before ? "there" : "elsewhere");
    join(thread);
}

static void *frees(void *block)
{
    free(block);
    return NULL;
}

/* Who has freed it is gone. */
static void ended(void)
{
    void *one = malloc(40);
    join(go(frees, one));
    void *two = malloc(40);
    printf("%s\n", two == one ? "there" : "elsewhere");
}

static void *frees_and_stays(void *block)
{
    free(block);
    sem_post(&freed);
    sem_wait(&done);
    return NULL;
}

/* Who has freed it is there: he keeps small blocks for himself. */
static void stays(size_t size)
{
    sem_init(&freed, 0, 0);
    sem_init(&done, 0, 0);
    void *one = malloc(size);
    pthread_t thread = go(frees_and_stays, one);
    sem_wait(&freed);
    void *two = malloc(size);
    printf("%s\n", two == one ? "there" : "elsewhere");
    sem_post(&done);
    join(thread);
}

static void child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        void *one = malloc(40);
        free(one);
        _exit(malloc(40) == one);
    }
    int status;
    waitpid(pid, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
}

/* Two that lie side by side are one then. */
static void *frees_two(void *unused)
{
    static void *volatile at[4];
    at[0] = malloc(2000), at[1] = malloc(2000), at[2] = malloc(30);
    free(at[0]);
    free(at[1]);
    at[3] = malloc(3800);
    cached = at[3] == at[0];
    return unused;
}

static void *waits(void *unused)
{
    sem_wait(&done);
    void *one = malloc(40);
    free(one);
    void *volatile two = malloc(40);
    cached = two == one;
    return unused;
}

static pthread_t early;

/* A thread that is there before main. */
__attribute__((constructor)) static void constructs(int argc, char **argv)
{
    if (arg_is(argc, argv, "early")) {
        sem_init(&done, 0, 0);
        early = go(waits, NULL);
    }
}

/* What its parent has freed before, the child gets. */
static void before_fork(void)
{
    pthread_t thread = go(frees_and_stays, malloc(500));
    void *one = malloc(40);
    free(one);
    pid_t pid = fork();
    if (pid == 0)
        _exit(malloc(40) == one);
    int status;
    waitpid(pid, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    sem_post(&done);
    join(thread);
}

/* Nothing can be given out again: too small, too large, before there is another thread. */
static void *frees_others(void *unused)
{
    (void)unused;
    void *one = malloc(400), *two = malloc(40);
    free(one);
    free(two);
    return malloc(200);
}

static void others(void)
{
    void *one = malloc(40);
    free(one);
    one = malloc(40);
    free(one);
    join(go(frees_others, NULL));
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "address"))
        sessions(NULL);
    else if (arg_is(argc, argv, "number"))
        sessions(&lock);
    else if (arg_is(argc, argv, "cache"))
        cache();
    else if (arg_is(argc, argv, "field"))
        field();
    else if (arg_is(argc, argv, "shrinks"))
        shrinks();
    else if (arg_is(argc, argv, "ended"))
        ended();
    else if (arg_is(argc, argv, "small"))
        stays(40);
    else if (arg_is(argc, argv, "large"))
        stays(2000);
    else if (arg_is(argc, argv, "child"))
        child();
    else if (arg_is(argc, argv, "before"))
        before_fork();
    else if (arg_is(argc, argv, "side")) {
        join(go(frees_two, NULL));
        printf("%s\n", cached ? "there" : "elsewhere");
    } else if (arg_is(argc, argv, "early")) {
        sem_post(&done);
        join(early);
        printf("%s\n", cached ? "there" : "elsewhere");
    } else
        others();
    return 0;
}
