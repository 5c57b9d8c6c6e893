/* Two threads take a lock in turn, many times.  One of them says that it gets on: by VS_progress, by what it writes, or not.
   progress declares | prints | silent */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../shim/include/vs.h"

enum { ROUNDS = 40 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static const char *how;

static void *works(void *arg)
{
    for (int n = 0; n < ROUNDS; n++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        if (!strcmp(how, "declares"))
            VS_progress();
        if (!strcmp(how, "prints") && write(1, ".", 1) != 1)
            return 0;
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t;
    how = argc > 1 ? argv[1] : "silent";
    pthread_create(&t, 0, works, 0);
    works(0);
    pthread_join(t, 0);
    VS_assert(0);
}
