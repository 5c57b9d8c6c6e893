/* Two threads use what a function of libc's keeps for all, of which nothing is seen: an execution that comes to other steps than its schedule says is
   left out, and said. */
#define _DEFAULT_SOURCE
#include "t.h"
#include <unistd.h>

static void *asks(void *arg)
{
    setusershell();
    (void)getusershell();
    endusershell();
    return arg;
}

int main(void)
{
    pthread_t t = go(asks, NULL);
    asks(NULL);
    join(t);
    return 0;
}
