// Two threads come to wait for each other in a circle of locks. What one of them writes right before that, a third one uses: without any lock,
// or under one. It is written only where the circle is bound to close, and nothing that the third does depends on what closes it. So a search
// that ends executions where the circle closes, and has the transition that closes it sleep while the third goes on, sees no execution in
// which both use the variable.
// selves: two threads that acquire again what they hold. What either writes before ends an execution that ends with a circle.
//   race_behind_circle unprotected|protected|selves
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "../shim/include/vs.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, of_value = PTHREAD_MUTEX_INITIALIZER;
static sem_t start;
static int protected;
// Of words of their own, since those that threads use without an order are objects as a whole.
static long bound_to_close;
static volatile long value, other;

static void lock_value(void) {
    if (protected) pthread_mutex_lock(&of_value);
}

static void unlock_value(void) {
    if (protected) pthread_mutex_unlock(&of_value);
}

static void set(long bound) {
    pthread_mutex_lock(&guard);
    bound_to_close = bound;
    pthread_mutex_unlock(&guard);
}

// Takes the first lock, then the second.
static void *one(void *unused) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&guard);
    long bound = bound_to_close;
    pthread_mutex_unlock(&guard);
    if (bound) {
        lock_value();
        value = 1;
        other = 1;
        unlock_value();
    }
    pthread_mutex_lock(&second);
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return unused;
}

// Takes the second, says so, and waits for the first.
static void *two(void *unused) {
    pthread_mutex_lock(&second);
    set(1);
    pthread_mutex_lock(&first);
    set(0);
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    return unused;
}

static void *three(void *unused) {
    while (sem_wait(&start)) {}
    lock_value();
    value = 2;
    other = 2;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    VS_assert(value == 2);
    unlock_value();
    return unused;
}

static void *self(void *lock) {
    while (sem_wait(&start)) {}
    pthread_mutex_lock(lock);
    value = 1;
    pthread_mutex_lock(lock);
    return NULL;
}

static int selves(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, self, &first);
    pthread_create(&threads[1], NULL, self, &second);
    sem_post(&start);
    sem_post(&start);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv) {
    protected = argc > 1 && !strcmp(argv[1], "protected");
    sem_init(&start, 0, 0);
    if (argc > 1 && !strcmp(argv[1], "selves")) return selves();
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, two, NULL);
    pthread_create(&threads[2], NULL, three, NULL);
    sem_post(&start);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
