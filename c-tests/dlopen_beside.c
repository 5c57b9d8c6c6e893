/* Two threads load the same library beside each other: who is first waits for nobody, and the order can be told. */
#include "t.h"
#include <dlfcn.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order;

static void loads(int who)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    assert(library && dlsym(library, "cos"));
    MUST(pthread_mutex_lock(&lock));
    order = order * 2 + who;
    MUST(pthread_mutex_unlock(&lock));
    MUST(dlclose(library));
}

static void *second(void *unused)
{
    (void)unused;
    loads(1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t = go(second, NULL);
    loads(2);
    join(t);
    assert(order == 4 || order == 5);
    if (arg_is(argc, argv, "main")) assert(order == 5);
    if (arg_is(argc, argv, "other")) assert(order == 4);
    return 0;
}
